"""Finite volumes on an unstructured mesh: upwind fluxes over edges, gathered into their two cells."""

import numpy as np


def mesh_edge_flux(area, left, residual, right, u, NC):
    for e in range(3 * NC):
        low = left[e]
        high = right[e]
        flux = 0.5 * area[e] * (u[low] + u[high]) - 0.5 * abs(area[e]) * (u[high] - u[low])
        residual[low] -= flux
        residual[high] += flux
