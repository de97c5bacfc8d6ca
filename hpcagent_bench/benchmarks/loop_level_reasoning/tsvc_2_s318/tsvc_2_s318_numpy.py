"""The largest magnitude among every inc-th element, the first of equal ones, plus its number from one."""


def tsvc_2_s318(a, result, inc, LEN_1D):
    k = 0
    where = 0
    best = abs(a[0])
    for i in range(1, LEN_1D):
        k = k + inc
        if abs(a[k]) > best:
            best = abs(a[k])
            where = i
    result[0] = best + (where + 1)
