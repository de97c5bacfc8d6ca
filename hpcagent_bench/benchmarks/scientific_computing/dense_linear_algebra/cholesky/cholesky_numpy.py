"""Cholesky factor of a shifted symmetric matrix: L L^T = A + 2 N I, L over the lower triangle of A.

Only the lower triangle is read and written.
"""

import numpy as np


def cholesky(a, N):
    for j in range(N):
        a[j, j] = np.sqrt(a[j, j] + 2 * N - np.dot(a[j, :j], a[j, :j]))
        for i in range(j + 1, N):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
