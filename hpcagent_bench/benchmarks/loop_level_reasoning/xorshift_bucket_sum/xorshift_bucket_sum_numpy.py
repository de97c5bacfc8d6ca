"""Sums values by bucket: the upper twelve bits of a 64-bit xorshift of their key, which wraps around."""

import numpy as np


def xorshift_bucket_sum(key, x, bucket, LEN_1D):
    for i in range(LEN_1D):
        h = key[i]
        h = h ^ (h << np.uint64(13))
        h = h ^ (h >> np.uint64(7))
        h = h ^ (h << np.uint64(17))
        slot = np.int64(h >> np.uint64(52))
        bucket[slot] = bucket[slot] + x[i]
