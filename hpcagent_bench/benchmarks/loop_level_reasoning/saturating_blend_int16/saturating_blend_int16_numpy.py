"""Sum or difference of 16-bit integers, as the sign of pick says, clamped to what 16 bits hold."""

import numpy as np


def saturating_blend_int16(a, b, pick, out, LEN_1D):
    for i in range(LEN_1D):
        if pick[i] > 0.0:
            s = np.int32(a[i]) + np.int32(b[i])
        else:
            s = np.int32(a[i]) - np.int32(b[i])
        if s > 32767:
            s = np.int32(32767)
        if s < -32768:
            s = np.int32(-32768)
        out[i] = s
