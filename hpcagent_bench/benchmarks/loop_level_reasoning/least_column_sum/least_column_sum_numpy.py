"""The sum of every column, one column after the other, and the least of them."""


def least_column_sum(a, column_sum, least, COLS, ROWS):
    for j in range(COLS):
        s = 0.0
        for i in range(ROWS):
            s = s + a[i, j]
        column_sum[j] = s
    low = column_sum[0]
    for j in range(1, COLS):
        if column_sum[j] < low:
            low = column_sum[j]
    least[0] = low
