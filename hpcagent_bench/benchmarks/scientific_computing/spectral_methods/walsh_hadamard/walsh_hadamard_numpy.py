"""Walsh-Hadamard transform down every column, natural order, not normalised; ``LEN`` is a power of two."""

import numpy as np


def walsh_hadamard(a, COLS, LEN):
    upper = np.empty(COLS, dtype=a.dtype)
    half = 1
    while half < LEN:
        for block in range(0, LEN, 2 * half):
            for k in range(block, block + half):
                upper[:] = a[k, :]
                a[k, :] = upper + a[k + half, :]
                a[k + half, :] = upper - a[k + half, :]
        half = 2 * half
