"""Running sum of a vector."""


def tsvc_2_s3112(a, b, LEN_1D):
    s = 0.0
    for i in range(LEN_1D):
        s = s + a[i]
        b[i] = s
