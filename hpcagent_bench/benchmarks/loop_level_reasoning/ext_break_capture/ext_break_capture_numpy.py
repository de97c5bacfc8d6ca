"""The first element above K and where it stands; -1 for both when there is none."""


def ext_break_capture(a, out_index, out_value, K, LEN_1D):
    where = -1
    value = -1.0
    for i in range(LEN_1D):
        if a[i] > K:
            where = i
            value = a[i]
            break
    out_index[0] = where
    out_value[0] = value
