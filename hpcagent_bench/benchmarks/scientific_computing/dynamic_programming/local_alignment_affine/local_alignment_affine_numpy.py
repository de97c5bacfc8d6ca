"""Local alignment of two sequences with affine gap costs: all scores, and the best one."""

import numpy as np


def local_alignment_affine(a, b, best, h, similarity, M, N):
    gap_up = np.full(N + 1, -1.0e6, dtype=h.dtype)
    for j in range(N + 1):
        h[0, j] = 0.0
    for i in range(1, M + 1):
        h[i, 0] = 0.0
    highest = 0.0
    for i in range(1, M + 1):
        gap_left = -1.0e6
        for j in range(1, N + 1):
            gap_up[j] = max(gap_up[j] - 1.0, h[i - 1, j] - 4.0)
            gap_left = max(gap_left - 1.0, h[i, j - 1] - 4.0)
            score = h[i - 1, j - 1] + similarity[a[i - 1], b[j - 1]]
            score = max(score, gap_up[j])
            score = max(score, gap_left)
            score = max(score, 0.0)
            h[i, j] = score
            highest = max(highest, score)
    best[0] = highest
