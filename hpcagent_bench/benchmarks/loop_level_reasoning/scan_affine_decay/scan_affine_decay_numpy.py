"""A level that decays by a factor of its own at every step and gains x."""


def scan_affine_decay(c, x, y, LEN_1D):
    y[0] = x[0]
    for i in range(1, LEN_1D):
        y[i] = c[i] * y[i - 1] + x[i]
