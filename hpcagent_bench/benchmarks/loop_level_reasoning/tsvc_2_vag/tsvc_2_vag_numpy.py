"""The elements of b in the order of a permutation."""


def tsvc_2_vag(a, b, ip, LEN_1D):
    for i in range(LEN_1D):
        a[i] = b[ip[i]]
