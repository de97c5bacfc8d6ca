"""Mean of a point and its four neighbours; points on the rim are copied."""


def rim_peeled_stencil(a, out, LEN_2D):
    for i in range(LEN_2D):
        for j in range(LEN_2D):
            if i == 0 or j == 0 or i == LEN_2D - 1 or j == LEN_2D - 1:
                out[i, j] = a[i, j]
            else:
                out[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
