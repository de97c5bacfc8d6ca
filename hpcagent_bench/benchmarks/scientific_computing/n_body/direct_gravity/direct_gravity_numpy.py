"""Gravitational acceleration of every body by direct summation over all pairs, Plummer softening, G = 1."""

import numpy as np


def direct_gravity(ax, ay, az, mass, x, y, z, softening, N):
    dx = np.empty(N, dtype=x.dtype)
    dy = np.empty(N, dtype=x.dtype)
    dz = np.empty(N, dtype=x.dtype)
    pull = np.empty(N, dtype=x.dtype)
    for i in range(N):
        dx[:] = x - x[i]
        dy[:] = y - y[i]
        dz[:] = z - z[i]
        pull[:] = dx * dx + dy * dy + dz * dz + softening * softening
        pull[:] = mass / (pull * np.sqrt(pull))
        ax[i] = np.sum(pull * dx)
        ay[i] = np.sum(pull * dy)
        az[i] = np.sum(pull * dz)
