"""Linear recurrence of order two with constant coefficients, driven by x; the first two values are given."""


def order_two_recurrence(x, y, LAG_ONE, LAG_TWO, LEN_1D):
    for i in range(2, LEN_1D):
        y[i] = LAG_ONE * y[i - 1] + LAG_TWO * y[i - 2] + x[i]
