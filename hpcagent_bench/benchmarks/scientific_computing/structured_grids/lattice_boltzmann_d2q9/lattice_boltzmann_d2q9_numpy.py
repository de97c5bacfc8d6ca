"""Lattice Boltzmann in the plane with nine velocities: BGK collision, then periodic streaming."""

import numpy as np


def lattice_boltzmann_d2q9(f, omega, NY, NX, TSTEPS):
    g = np.empty((9, NY, NX), dtype=f.dtype)
    weight = np.empty(9, dtype=f.dtype)
    cx = np.zeros(9, dtype=np.int64)
    cy = np.zeros(9, dtype=np.int64)
    weight[0] = 4.0 / 9.0
    weight[1:5] = 1.0 / 9.0
    weight[5:9] = 1.0 / 36.0
    cx[1] = 1
    cy[2] = 1
    cx[3] = -1
    cy[4] = -1
    cx[5] = 1
    cy[5] = 1
    cx[6] = -1
    cy[6] = 1
    cx[7] = -1
    cy[7] = -1
    cx[8] = 1
    cy[8] = -1
    for t in range(TSTEPS):
        for y in range(NY):
            for x in range(NX):
                rho = 0.0
                ux = 0.0
                uy = 0.0
                for p in range(9):
                    rho += f[p, y, x]
                    ux += cx[p] * f[p, y, x]
                    uy += cy[p] * f[p, y, x]
                ux = ux / rho
                uy = uy / rho
                square = 1.5 * (ux * ux + uy * uy)
                for q in range(9):
                    cu = 3.0 * (cx[q] * ux + cy[q] * uy)
                    equilibrium = weight[q] * rho * (1.0 + cu + 0.5 * cu * cu - square)
                    yn = (y + cy[q] + NY) % NY
                    xn = (x + cx[q] + NX) % NX
                    g[q, yn, xn] = f[q, y, x] - omega * (f[q, y, x] - equilibrium)
        f[:, :, :] = g
