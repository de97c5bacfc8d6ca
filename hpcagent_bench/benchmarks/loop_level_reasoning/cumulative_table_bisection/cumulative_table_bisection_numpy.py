"""Sums widths up to the edges of a table, and finds by bisection in which of its cells every value lies."""

import numpy as np


def cumulative_table_bisection(u, width, cell, LEN_1D, TABLE):
    edge = np.zeros(TABLE + 1, dtype=np.int64)
    for m in range(TABLE):
        edge[m + 1] = edge[m] + width[m]
    for i in range(LEN_1D):
        target = int(u[i])
        low = 0
        high = TABLE
        while high - low > 1:
            middle = (low + high) // 2
            if edge[middle] <= target:
                low = middle
            else:
                high = middle
        cell[i] = low
