"""Bellman-Ford relaxation: every sweep tries every edge on the distances that the sweep before left."""

import numpy as np


def bellman_ford_sweeps(distance, length, source, target, N, SWEEPS):
    before = np.empty(N, dtype=distance.dtype)
    for t in range(SWEEPS):
        before[:] = distance
        for e in range(4 * N):
            candidate = before[source[e]] + length[e]
            if candidate < distance[target[e]]:
                distance[target[e]] = candidate
