"""In-place sweep over left, upper left and upper right neighbours: independent where 2 * i + j is constant."""


def skew_two_wavefront(a, LEN_2D):
    for i in range(1, LEN_2D):
        for j in range(1, LEN_2D - 1):
            a[i, j] = 0.25 * a[i, j] + 0.3 * a[i, j - 1] + 0.35 * a[i - 1, j + 1] + 0.1 * a[i - 1, j - 1]
