"""Products of neighbouring three-point sums, the sums kept in a temporary."""

import numpy as np


def fuse_stencil_through_transient(a, out, LEN_1D):
    t = np.empty(LEN_1D, dtype=a.dtype)
    for i in range(1, LEN_1D - 1):
        t[i] = a[i - 1] + a[i] + a[i + 1]
    for i in range(1, LEN_1D - 2):
        out[i] = t[i] * t[i + 1]
