"""Gaussian-process regression: posterior mean at query points, squared-exponential kernel of length 1.

Solves (K + noise I) w = targets by conjugate gradients, then mean = K(query, train) w.
"""

import numpy as np


def gaussian_process(mean, query, targets, train, noise, N, NQ):
    cov = np.empty((N, N), dtype=train.dtype)
    weights = np.zeros(N, dtype=train.dtype)
    residual = np.empty(N, dtype=train.dtype)
    search = np.empty(N, dtype=train.dtype)
    image = np.empty(N, dtype=train.dtype)
    for i in range(N):
        cov[i, :] = np.exp(
            -0.5
            * (
                (train[:, 0] - train[i, 0]) ** 2
                + (train[:, 1] - train[i, 1]) ** 2
                + (train[:, 2] - train[i, 2]) ** 2
            )
        )
        cov[i, i] = cov[i, i] + noise

    residual[:] = targets
    search[:] = targets
    rho = np.dot(residual, residual)
    goal = 1e-28 * rho
    for _step in range(10 * N):
        if rho <= goal:
            break
        image[:] = cov @ search
        stride = rho / np.dot(search, image)
        weights[:] = weights + stride * search
        residual[:] = residual - stride * image
        fresh = np.dot(residual, residual)
        search[:] = residual + (fresh / rho) * search
        rho = fresh

    for k in range(NQ):
        mean[k] = np.sum(
            weights
            * np.exp(
                -0.5
                * (
                    (train[:, 0] - query[k, 0]) ** 2
                    + (train[:, 1] - query[k, 1]) ** 2
                    + (train[:, 2] - query[k, 2]) ** 2
                )
            )
        )
