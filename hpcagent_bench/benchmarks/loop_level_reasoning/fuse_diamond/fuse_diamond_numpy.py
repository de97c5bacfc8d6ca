"""out = (a*a + 1) * (a*a - 1), each step in a pass and a temporary of its own."""

import numpy as np


def fuse_diamond(a, out, LEN_1D):
    t = np.empty(LEN_1D, dtype=a.dtype)
    p = np.empty(LEN_1D, dtype=a.dtype)
    m = np.empty(LEN_1D, dtype=a.dtype)
    for i in range(LEN_1D):
        t[i] = a[i] * a[i]
    for i in range(LEN_1D):
        p[i] = t[i] + 1.0
    for i in range(LEN_1D):
        m[i] = t[i] - 1.0
    for i in range(LEN_1D):
        out[i] = p[i] * m[i]
