"""Running sum of products down every column whose first element is above zero."""


def tsvc_2_s275(aa, bb, cc, LEN_2D):
    for i in range(LEN_2D):
        if aa[0, i] > 0.0:
            for j in range(1, LEN_2D):
                aa[j, i] = aa[j - 1, i] + bb[j, i] * cc[j, i]
