"""Inputs of a search that ends late: the place of the hit is drawn, mostly near the end."""

import numpy as np

LIMIT = 1000.0
BLOCK = 1 << 15  # stays in the cache of a core


def initialize(LEN_1D, K, datatype, rng, structure_rng):
    """``a`` in [-1000, 1000) with its first element above ``K`` late, and the two outputs, zero.

    The hit lies ``LEN_1D * u**8`` before the end for ``u`` uniform in [0, 1.1): three of four in the last
    tenth, some anywhere, and one draw of eleven has none. So draws take about as long as each other to
    search, and yet no part of the vector may be left out.
    """
    before_end = int(LEN_1D * rng.uniform(0.0, 1.1) ** 8)
    first = LEN_1D - 1 - before_end
    head = first if first >= 0 else LEN_1D
    a = np.empty(LEN_1D, datatype)
    room, mirrored = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, LEN_1D, BLOCK):
        block = room[: LEN_1D - start]
        rng.random(out=block)
        block *= 2.0 * LIMIT
        block -= LIMIT
        below = block[: max(0, head - start)]
        np.minimum(below, np.subtract(2.0 * K, below, out=mirrored[: below.size]), out=below)
        a[start : start + block.size] = block
    if first >= 0:
        a[first] = rng.uniform(0.5 * (K + LIMIT), LIMIT)
    return a, np.zeros(1, np.int64), np.zeros(1, datatype)
