"""Every element meets its mirror image: the first half sees old values, the second half new ones."""


def crossing_mirror_update(a, b, c, LEN_1D):
    for i in range(LEN_1D):
        a[i] = 0.5 * a[LEN_1D - 1 - i] + b[i] * c[i]
