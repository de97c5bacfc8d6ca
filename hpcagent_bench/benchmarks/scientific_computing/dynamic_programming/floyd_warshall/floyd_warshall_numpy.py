"""Shortest paths between all pairs of vertices, by admitting one more intermediate vertex at a time."""

import numpy as np


def floyd_warshall(d, N):
    for k in range(N):
        for i in range(N):
            through = d[i, k]
            for j in range(N):
                d[i, j] = min(d[i, j], through + d[k, j])
