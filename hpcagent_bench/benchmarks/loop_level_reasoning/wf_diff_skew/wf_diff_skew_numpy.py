"""Every element gains the mean of the one above it and that one's right neighbour."""


def wf_diff_skew(a, LEN_2D):
    for i in range(1, LEN_2D):
        for j in range(LEN_2D - 1):
            a[i, j] = a[i, j] + 0.5 * (a[i - 1, j] + a[i - 1, j + 1])
