"""Two passes over src, one guarded by a condition per row, the other by a scalar."""


def fuse_move_ifs(a, b, cond, src, K, LEN_2D):
    for i in range(LEN_2D):
        for j in range(LEN_2D):
            if cond[i] > 0.0:
                a[i, j] = 2.0 * src[i, j]
    for i in range(LEN_2D):
        for j in range(LEN_2D):
            if K > 0:
                b[i, j] = src[i, j] + 1.0
