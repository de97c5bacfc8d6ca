"""a gains b times a whole number."""


def tsvc_2_vpvts(a, b, LEN_1D, S):
    for i in range(LEN_1D):
        a[i] = a[i] + b[i] * S
