"""a gains twice the elements of b in the order of a permutation."""


def tsvc_2_s4112(a, b, ip, LEN_1D):
    for i in range(LEN_1D):
        a[i] = a[i] + 2.0 * b[ip[i]]
