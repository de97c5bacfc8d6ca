"""Two vector sums and the sum over both, which takes the place of the first element of b."""


def tsvc_2_s319(a, b, c, d, e, LEN_1D):
    s = 0.0
    for i in range(LEN_1D):
        a[i] = c[i] + d[i]
        s = s + a[i]
        b[i] = c[i] + e[i]
        s = s + b[i]
    b[0] = s
