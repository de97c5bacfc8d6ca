"""Number, sum, sum of squares and least of the values whose gate is open."""


def conditional_moments(x, gate, count, total, squares, least, LEN_1D):
    n = 0
    s = 0.0
    q = 0.0
    low = least[0]
    for i in range(LEN_1D):
        if gate[i] > 0.0:
            n = n + 1
            s = s + x[i]
            q = q + x[i] * x[i]
            if x[i] < low:
                low = x[i]
    count[0] = n
    total[0] = s
    squares[0] = q
    least[0] = low
