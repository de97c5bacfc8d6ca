"""Sum of a vector, left to right."""


def tsvc_2_s311(a, sum_out, LEN_1D):
    s = 0.0
    for i in range(LEN_1D):
        s = s + a[i]
    sum_out[0] = s
