"""Two statements in the wrong order: the first reads what the second wrote one step ago."""


def reorder_shifted_updates(a, b, c, d, LEN_1D):
    for i in range(1, LEN_1D - 1):
        a[i] = b[i - 1] * c[i]
        b[i] = b[i + 1] - d[i]
