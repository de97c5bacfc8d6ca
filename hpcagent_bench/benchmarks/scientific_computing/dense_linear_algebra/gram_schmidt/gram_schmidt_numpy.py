"""Thin QR factors of a tall matrix by modified Gram-Schmidt: A = Q R, Q of orthonormal columns, R upper.

``M`` is by how many rows the matrix is longer than wide.
"""

import numpy as np


def gram_schmidt(a, q, r, M, N):
    q[:, :] = a
    r[:, :] = 0.0
    for k in range(N):
        r[k, k] = np.sqrt(np.sum(q[:, k] * q[:, k]))
        q[:, k] = q[:, k] / r[k, k]
        for j in range(k + 1, N):
            r[k, j] = np.dot(q[:, k], q[:, j])
            q[:, j] = q[:, j] - r[k, j] * q[:, k]
