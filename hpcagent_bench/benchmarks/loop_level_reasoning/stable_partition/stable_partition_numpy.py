"""Values with a low key first, then the others, both in their old order; split is where the others start."""


def stable_partition(key, x, out, split, LEN_1D):
    k = 0
    for i in range(LEN_1D):
        if key[i] < 0.25:
            out[k] = x[i]
            k = k + 1
    split[0] = k
    for i in range(LEN_1D):
        if key[i] >= 0.25:
            out[k] = x[i]
            k = k + 1
