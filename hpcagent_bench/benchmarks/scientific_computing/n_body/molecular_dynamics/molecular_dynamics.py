"""Inputs of molecular_dynamics: a fluid just off its lattice, since free positions would overlap."""

import numpy as np


def initialize(N, datatype, rng, structure_rng):
    """Atoms on random sites of a simple cubic lattice of spacing 1.2, displaced by up to 0.1 along each axis.

    The lattice has the fewest sites per side that hold N atoms; the box is the lattice's. Velocities are
    normal with variance 1 (temperature 1).
    """
    side = 1
    while side**3 < N:
        side += 1
    site = structure_rng.permutation(side**3)[:N]
    corner = np.stack([site // (side * side), site // side % side, site % side])
    position = 1.2 * corner + rng.uniform(-0.1, 0.1, (3, N))
    velocity = rng.standard_normal((3, N))
    box = np.full(3, 1.2 * side)
    return tuple(array.astype(datatype) for array in (box, *velocity, *position))
