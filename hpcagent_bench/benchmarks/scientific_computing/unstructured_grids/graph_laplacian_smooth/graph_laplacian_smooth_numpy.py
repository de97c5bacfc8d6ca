"""Laplacian smoothing of mesh nodes: every node moves toward the mean of its neighbours."""

import numpy as np


def graph_laplacian_smooth(neighbour, row_ptr, x, x_new, y, y_new, relax, N):
    for i in range(N):
        first = row_ptr[i]
        last = row_ptr[i + 1]
        sx = 0.0
        sy = 0.0
        for k in range(first, last):
            sx += x[neighbour[k]]
            sy += y[neighbour[k]]
        x_new[i] = x[i]
        y_new[i] = y[i]
        if last > first:
            x_new[i] = (1.0 - relax) * x[i] + relax * sx / (last - first)
            y_new[i] = (1.0 - relax) * y[i] + relax * sy / (last - first)
