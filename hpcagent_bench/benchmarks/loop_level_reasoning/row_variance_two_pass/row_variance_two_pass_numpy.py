"""Mean and variance of every row, in two passes over it."""


def row_variance_two_pass(a, mean, variance, COLS, ROWS):
    for i in range(ROWS):
        s = 0.0
        for j in range(COLS):
            s = s + a[i, j]
        centre = s / COLS
        q = 0.0
        for j in range(COLS):
            q = q + (a[i, j] - centre) * (a[i, j] - centre)
        mean[i] = centre
        variance[i] = q / COLS
