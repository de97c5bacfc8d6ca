"""Sum and weighted difference of pairs of elements, in place; a permutation says who is paired."""


def indirect_butterfly(x, w, pair, LEN_1D):
    for m in range(LEN_1D // 2):
        first = pair[2 * m]
        second = pair[2 * m + 1]
        u = x[first]
        v = x[second]
        x[first] = u + v
        x[second] = w[m] * (u - v)
