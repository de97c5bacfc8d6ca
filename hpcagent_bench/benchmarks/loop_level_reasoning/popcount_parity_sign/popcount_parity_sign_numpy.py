"""Flips the sign of elements whose key has an odd number of set bits, and counts all set bits."""


def popcount_parity_sign(key, x, out, ones, LEN_1D):
    total = 0
    for i in range(LEN_1D):
        rest = key[i]
        bits = 0
        while rest != 0:
            rest = rest & (rest - 1)
            bits = bits + 1
        if bits % 2 == 0:
            out[i] = x[i]
        else:
            out[i] = -x[i]
        total = total + bits
    ones[0] = total
