"""Maxwell's equations in the plane on Yee's staggered grid: electric and magnetic fields in turns."""

import numpy as np


def yee_fdtd_2d(ex, ey, hz, NX, NY, TSTEPS):
    for t in range(TSTEPS):
        ey[1:, :] = ey[1:, :] - 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] = ex[:, 1:] - 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] = hz[:-1, :-1] - 0.7 * (
            ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        )
