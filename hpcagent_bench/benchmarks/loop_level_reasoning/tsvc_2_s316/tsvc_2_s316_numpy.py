"""The smallest element."""


def tsvc_2_s316(a, result, LEN_1D):
    least = a[0]
    for i in range(1, LEN_1D):
        if a[i] < least:
            least = a[i]
    result[0] = least
