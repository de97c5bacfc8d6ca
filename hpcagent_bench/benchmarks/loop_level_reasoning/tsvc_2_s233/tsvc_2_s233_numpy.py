"""Running sums of cc: in aa down the columns, in bb along the rows."""


def tsvc_2_s233(aa, bb, cc, LEN_2D):
    for i in range(1, LEN_2D):
        for j in range(1, LEN_2D):
            aa[j, i] = aa[j - 1, i] + cc[j, i]
        for k in range(1, LEN_2D):
            bb[k, i] = bb[k, i - 1] + cc[k, i]
