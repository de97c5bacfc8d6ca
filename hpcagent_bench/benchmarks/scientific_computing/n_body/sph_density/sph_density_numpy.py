"""Density of particles in the unit square by smoothed-particle hydrodynamics, neighbours from a cell list.

FILL particles per cell on average; the cubic spline ends at a cell's width, so that a particle's neighbours
lie in the three by three cells around its own.
"""

import numpy as np


def spline(q):
    """Cubic spline of q = distance / smoothing length in [0, 2], not normalised."""
    if q < 1.0:
        return 1.0 - 1.5 * q * q + 0.75 * q * q * q
    return 0.25 * (2.0 - q) * (2.0 - q) * (2.0 - q)


def sph_density(density, mass, x, y, CELLS, FILL):
    start = np.zeros(CELLS * CELLS + 1, dtype=np.int64)
    place = np.empty(CELLS * CELLS, dtype=np.int64)
    order = np.empty(FILL * CELLS * CELLS, dtype=np.int64)
    home = np.empty(FILL * CELLS * CELLS, dtype=np.int64)
    for i in range(FILL * CELLS * CELLS):
        home[i] = min(int(x[i] * CELLS), CELLS - 1) * CELLS + min(int(y[i] * CELLS), CELLS - 1)
        start[home[i] + 1] += 1
    for cell in range(CELLS * CELLS):
        place[cell] = start[cell]
        start[cell + 1] += start[cell]
    for i in range(FILL * CELLS * CELLS):
        order[place[home[i]]] = i
        place[home[i]] += 1

    for cell in range(CELLS * CELLS):
        row = cell // CELLS
        column = cell % CELLS
        for k in range(start[cell], start[cell + 1]):
            p = order[k]
            total = 0.0
            for near in range(max(row - 1, 0), min(row + 2, CELLS)):
                first = start[near * CELLS + max(column - 1, 0)]
                last = start[near * CELLS + min(column + 2, CELLS)]
                for m in range(first, last):
                    other = order[m]
                    square = (x[p] - x[other]) ** 2 + (y[p] - y[other]) ** 2
                    if square * CELLS * CELLS < 1.0:
                        total += mass[other] * spline(2.0 * CELLS * np.sqrt(square))
            density[p] = total * 40.0 * CELLS * CELLS / (7.0 * np.pi)
