"""The weighted elements above zero, packed to the front in order, and their count; the rest of out stays."""


def compact_threshold_pack(out, out_count, src, weight, LEN_1D):
    k = 0
    for i in range(LEN_1D):
        if src[i] > 0.0:
            out[k] = src[i] * weight[i]
            k = k + 1
    out_count[0] = k
