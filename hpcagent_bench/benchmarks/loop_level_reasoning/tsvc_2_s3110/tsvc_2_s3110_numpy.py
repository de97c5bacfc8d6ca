"""The largest element of a matrix, the first of equal ones, plus its row and column counted from one."""


def tsvc_2_s3110(aa, bb, LEN_2D):
    best = aa[0, 0]
    row = 0
    column = 0
    for i in range(LEN_2D):
        for j in range(LEN_2D):
            if aa[i, j] > best:
                best = aa[i, j]
                row = i
                column = j
    bb[0, 0] = best + (row + 1) + (column + 1)
