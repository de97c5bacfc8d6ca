"""The cheapest way to multiply a chain of matrices: costs of all sub-chains, short ones first."""

import numpy as np


def matrix_chain_cost(cost, extent, N):
    for i in range(N):
        cost[i, i] = 0.0
    for length in range(1, N):
        for i in range(N - length):
            j = i + length
            ends = extent[i] * extent[j + 1]
            lowest = cost[i, i] + cost[i + 1, j] + ends * extent[i + 1]
            for k in range(i + 1, j):
                lowest = min(lowest, cost[i, k] + cost[k + 1, j] + ends * extent[k + 1])
            cost[i, j] = lowest
