"""Sum of the elements above zero."""


def tsvc_2_s3111(a, b, LEN_1D):
    s = 0.0
    for i in range(LEN_1D):
        if a[i] > 0.0:
            s = s + a[i]
    b[0] = s
