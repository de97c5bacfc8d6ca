"""aa gains a product element by element, column by column, and a is made between two columns."""


def tsvc_2_s2275(a, aa, b, bb, c, cc, d, LEN_2D):
    for i in range(LEN_2D):
        for j in range(LEN_2D):
            aa[j, i] = aa[j, i] + bb[j, i] * cc[j, i]
        a[i] = b[i] + c[i] * d[i]
