"""Smoothing sweeps of the l1-Jacobi method: x += (b - A x) / d with d the row sums of |A|, A in sparse rows.

A row without entries keeps its x.
"""

import numpy as np


def l1_jacobi(b, cols, row_start, vals, x, N, NNZ, SWEEPS):
    norm = np.zeros(N, dtype=x.dtype)
    fresh = np.empty(N, dtype=x.dtype)
    for i in range(N):
        for e in range(row_start[i], row_start[i + 1]):
            norm[i] += np.abs(vals[e])
    for _sweep in range(SWEEPS):
        for i in range(N):
            residual = b[i]
            for e in range(row_start[i], row_start[i + 1]):
                residual -= vals[e] * x[cols[e]]
            fresh[i] = x[i]
            if norm[i] > 0.0:
                fresh[i] += residual / norm[i]
        x[:] = fresh
