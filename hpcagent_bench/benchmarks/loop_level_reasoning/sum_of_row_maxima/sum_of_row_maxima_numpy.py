"""The largest element of every row, and their sum."""


def sum_of_row_maxima(a, row_max, total, COLS, ROWS):
    s = 0.0
    for i in range(ROWS):
        best = a[i, 0]
        for j in range(1, COLS):
            if a[i, j] > best:
                best = a[i, j]
        row_max[i] = best
        s = s + best
    total[0] = s
