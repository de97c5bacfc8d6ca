"""Sum of the elements at odd indices, chosen by a guard on the index."""


def quasi_affine_reduce_odd(a, out, LEN_1D):
    s = 0.0
    for i in range(LEN_1D):
        if i % 2 == 1:
            s = s + a[i]
    out[0] = s
