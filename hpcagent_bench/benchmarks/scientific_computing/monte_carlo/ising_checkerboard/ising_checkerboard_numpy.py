"""One Metropolis sweep of the two-dimensional Ising model, first the black sites, then the white ones."""

import numpy as np


def ising_checkerboard(chance, magnet, spin, beta, N):
    for colour in range(2):
        for i in range(N):
            for j in range((i + colour) % 2, N, 2):
                field = 0
                if i > 0:
                    field += 2 * spin[i - 1, j] - 1
                if i < N - 1:
                    field += 2 * spin[i + 1, j] - 1
                if j > 0:
                    field += 2 * spin[i, j - 1] - 1
                if j < N - 1:
                    field += 2 * spin[i, j + 1] - 1
                energy = 2 * (2 * spin[i, j] - 1) * field
                if energy <= 0 or chance[i, j] < np.exp(-beta * energy):
                    spin[i, j] = 1 - spin[i, j]
    for i in range(N):
        total = 0
        for j in range(N):
            total += 2 * spin[i, j] - 1
        magnet[i] = total
