"""Where two vectors differ first, and by how much; -1 where they are equal."""


def first_mismatch(a, b, place, gap, LEN_1D):
    found = -1
    difference = 0.0
    for i in range(LEN_1D):
        if a[i] != b[i]:
            found = i
            difference = a[i] - b[i]
            break
    place[0] = found
    gap[0] = difference
