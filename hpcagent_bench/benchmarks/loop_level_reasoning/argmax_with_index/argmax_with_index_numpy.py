"""The largest element and where it stands; the first one when several are equal."""


def argmax_with_index(a, out_index, out_value, LEN_1D):
    best = a[0]
    where = 0
    for i in range(1, LEN_1D):
        if a[i] > best:
            best = a[i]
            where = i
    out_value[0] = best
    out_index[0] = where
