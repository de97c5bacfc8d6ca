"""Shallow water equations in conservation form, advanced by the Lax-Friedrichs scheme."""

import numpy as np


def shallow_water_lax(h, hu, hv, ratio, NY, NX, TSTEPS):
    fx = np.zeros((NY, NX), dtype=h.dtype)
    fy = np.zeros((NY, NX), dtype=h.dtype)
    cross = np.zeros((NY, NX), dtype=h.dtype)
    h_new = np.zeros((NY, NX), dtype=h.dtype)
    hu_new = np.zeros((NY, NX), dtype=h.dtype)
    hv_new = np.zeros((NY, NX), dtype=h.dtype)
    for t in range(TSTEPS):
        fx[:, :] = hu * hu / h + 4.905 * h * h
        fy[:, :] = hv * hv / h + 4.905 * h * h
        cross[:, :] = hu * hv / h
        h_new[1:-1, 1:-1] = 0.25 * (h[1:-1, 2:] + h[1:-1, :-2] + h[2:, 1:-1] + h[:-2, 1:-1]) - ratio * (
            hu[1:-1, 2:] - hu[1:-1, :-2] + hv[2:, 1:-1] - hv[:-2, 1:-1]
        )
        hu_new[1:-1, 1:-1] = 0.25 * (
            hu[1:-1, 2:] + hu[1:-1, :-2] + hu[2:, 1:-1] + hu[:-2, 1:-1]
        ) - ratio * (fx[1:-1, 2:] - fx[1:-1, :-2] + cross[2:, 1:-1] - cross[:-2, 1:-1])
        hv_new[1:-1, 1:-1] = 0.25 * (
            hv[1:-1, 2:] + hv[1:-1, :-2] + hv[2:, 1:-1] + hv[:-2, 1:-1]
        ) - ratio * (cross[1:-1, 2:] - cross[1:-1, :-2] + fy[2:, 1:-1] - fy[:-2, 1:-1])
        h[1:-1, 1:-1] = h_new[1:-1, 1:-1]
        hu[1:-1, 1:-1] = hu_new[1:-1, 1:-1]
        hv[1:-1, 1:-1] = hv_new[1:-1, 1:-1]
