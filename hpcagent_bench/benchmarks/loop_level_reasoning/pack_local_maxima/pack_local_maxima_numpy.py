"""Place and height of every inner local maximum, packed in order, and how many there are."""


def pack_local_maxima(x, place, height, count, LEN_1D):
    k = 0
    for i in range(1, LEN_1D - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            place[k] = i
            height[k] = x[i]
            k = k + 1
    count[0] = k
