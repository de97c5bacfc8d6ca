"""Sum of the running maxima of a vector; the maximum starts afresh every BLOCK elements."""


def block_prefix_maxima_sum(x, total, BLOCK, LEN_1D):
    s = 0.0
    best = x[0]
    for i in range(LEN_1D):
        if i % BLOCK == 0 or x[i] > best:
            best = x[i]
        s = s + best
    total[0] = s
