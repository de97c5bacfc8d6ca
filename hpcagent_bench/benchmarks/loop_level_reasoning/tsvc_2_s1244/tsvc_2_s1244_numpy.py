"""a from b and c; d is the new element of a plus the old one to its right."""


def tsvc_2_s1244(a, b, c, d, LEN_1D):
    for i in range(LEN_1D - 1):
        a[i] = b[i] + c[i] * c[i] + b[i] * b[i] + c[i]
        d[i] = a[i] + a[i + 1]
