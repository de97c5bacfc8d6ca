"""Three arrays hand their next elements round; every statement reads what the following ones overwrite."""


def antidependence_rotation(a, b, c, d, LEN_1D):
    for i in range(LEN_1D - 1):
        a[i] = b[i + 1] * d[i]
        b[i] = c[i + 1] + d[i]
        c[i] = a[i + 1] - d[i]
