"""Each element from the one K places before it, damped, plus a product."""


def versioned_distance_update(a, b, c, K, LEN_1D):
    for i in range(K, LEN_1D):
        a[i] = 0.75 * a[i - K] + b[i] * c[i]
