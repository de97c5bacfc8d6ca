"""Poisson equation on periodic squares, solved in Fourier space: -laplace(potential) = charge, zero mean.

The squares have side 2 pi and LEN x LEN points, ``LEN`` a power of two. A forward transform applied twice
gives LEN^2 times the field mirrored in the origin, so the way back is the way there, read in reverse.
"""

import numpy as np


def poisson_fft(charge, potential, BATCH, LEN):
    field = np.empty((LEN, LEN), dtype=np.complex128)
    work = np.empty((LEN, LEN), dtype=np.complex128)
    twisted = np.empty(LEN, dtype=np.complex128)
    twiddle = np.empty(LEN, dtype=np.complex128)
    mirror = np.zeros(LEN, dtype=np.int64)
    laplace = np.ones((LEN, LEN), dtype=np.float64)
    for kx in range(LEN):
        for ky in range(LEN):
            if kx + ky > 0:
                laplace[kx, ky] = min(kx, LEN - kx) ** 2 + min(ky, LEN - ky) ** 2
    for t in range(LEN):
        twiddle[t] = np.cos(2.0 * np.pi * t / LEN) - 1j * np.sin(2.0 * np.pi * t / LEN)
    for k in range(1, LEN):
        mirror[k] = mirror[k // 2] // 2 + (k % 2) * (LEN // 2)

    for b in range(BATCH):
        field[:, :] = charge[b, :, :]
        for turn in range(4):
            # Transform down the columns, then transpose: two turns make a two-dimensional transform.
            for k in range(LEN):
                work[k, :] = field[mirror[k], :]
            half = 1
            while half < LEN:
                for block in range(0, LEN, 2 * half):
                    for k in range(half):
                        twisted[:] = twiddle[k * (LEN // (2 * half))] * work[block + half + k, :]
                        work[block + half + k, :] = work[block + k, :] - twisted
                        work[block + k, :] = work[block + k, :] + twisted
                half = 2 * half
            for k in range(LEN):
                field[:, k] = work[k, :]
            if turn == 1:
                field[:, :] = field / laplace
                field[0, 0] = 0.0
        for ix in range(LEN):
            opposite = (LEN - ix) % LEN
            potential[b, ix, 0] = np.real(field[opposite, 0]) / (LEN * LEN)
            potential[b, ix, 1:] = np.real(field[opposite, :0:-1]) / (LEN * LEN)
