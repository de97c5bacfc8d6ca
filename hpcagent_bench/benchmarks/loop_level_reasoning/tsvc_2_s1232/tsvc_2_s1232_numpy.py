"""Sum of two matrices on and below the diagonal, in every eighth column, column by column."""


def tsvc_2_s1232(aa, bb, cc, LEN_2D):
    for j in range(0, LEN_2D, 8):
        for i in range(j, LEN_2D):
            aa[i, j] = bb[i, j] + cc[i, j]
