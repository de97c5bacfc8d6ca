"""The likeliest states of a hidden Markov model behind a sequence of observations, in logarithms."""

import numpy as np


def viterbi_decode(emission, observed, path, score, start, transition, K, T):
    before = np.empty(K, dtype=start.dtype)
    now = np.empty(K, dtype=start.dtype)
    origin = np.zeros((T, K), dtype=np.int32)
    for s in range(K):
        before[s] = start[s] + emission[s, observed[0]]
    for t in range(1, T):
        for s in range(K):
            best = before[0] + transition[s, 0]
            where = 0
            for r in range(1, K):
                candidate = before[r] + transition[s, r]
                if candidate > best:
                    best = candidate
                    where = r
            now[s] = best + emission[s, observed[t]]
            origin[t, s] = where
        before[:] = now
    last = 0
    for s in range(1, K):
        if before[s] > before[last]:
            last = s
    score[0] = before[last]
    path[T - 1] = last
    for back in range(T - 1):
        last = origin[T - 1 - back, last]
        path[T - 2 - back] = last
