"""Two vectors that are equal at first and differ here and there in their last quarter."""

import numpy as np


def initialize(LEN_1D, datatype, rng, structure_rng):
    a = rng.uniform(-1000.0, 1000.0, LEN_1D).astype(datatype)
    b = a.copy()
    first = int(rng.integers(3 * LEN_1D // 4, LEN_1D))
    apart = b[first::17]
    apart += rng.uniform(1.0, 2.0, apart.size).astype(datatype)
    return a, b, np.zeros(1, datatype), np.zeros(1, np.int64)
