"""Running sums down the columns from index 8: of aa by the inner loop, of bb from one row to the next."""


def tsvc_2_s2233(aa, bb, cc, LEN_2D):
    for i in range(8, LEN_2D):
        for j in range(8, LEN_2D):
            aa[j, i] = aa[j - 1, i] + cc[j, i]
        for k in range(8, LEN_2D):
            bb[i, k] = bb[i - 1, k] + cc[i, k]
