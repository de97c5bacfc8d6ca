"""Spreads packed values over the flagged places in order; the other places are halved."""


def unpack_by_mask(packed, flag, spread, LEN_1D):
    k = 0
    for i in range(LEN_1D):
        if flag[i] > 0.25:
            spread[i] = packed[k]
            k = k + 1
        else:
            spread[i] = 0.5 * spread[i]
