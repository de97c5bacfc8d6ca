"""b becomes a product, and a gains that product times c."""


def tsvc_2_s152(a, b, c, d, e, LEN_1D):
    for i in range(LEN_1D):
        b[i] = d[i] * e[i]
        a[i] = a[i] + b[i] * c[i]
