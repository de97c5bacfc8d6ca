"""Breadth-first search in a random graph: the level of every vertex, and the potential it is reached with."""

import numpy as np


def bfs_potential_levels(adjacent, level, potential, reached, N, DEGREE):
    queue = np.zeros(N, dtype=np.int64)
    for i in range(N):
        level[i] = -1
        reached[i] = 0.0
    level[0] = 0
    reached[0] = potential[0]
    head = 0
    tail = 1
    while head < tail:
        v = queue[head]
        head += 1
        for k in range(DEGREE):
            w = adjacent[v, k]
            if level[w] < 0:
                level[w] = level[v] + 1
                queue[tail] = w
                tail += 1
            if level[w] == level[v] + 1:
                reached[w] = max(reached[w], reached[v] + potential[w])
