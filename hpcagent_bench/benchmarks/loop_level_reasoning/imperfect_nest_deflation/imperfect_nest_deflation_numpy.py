"""Every row loses its component along x: a = a - (a x) y, one row after the other."""


def imperfect_nest_deflation(a, x, y, COLS, ROWS):
    for i in range(ROWS):
        s = 0.0
        for j in range(COLS):
            s = s + a[i, j] * x[j]
        for j in range(COLS):
            a[i, j] = a[i, j] - s * y[j]
