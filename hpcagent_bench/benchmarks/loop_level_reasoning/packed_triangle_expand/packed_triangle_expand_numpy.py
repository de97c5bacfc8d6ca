"""A scaled symmetric matrix from the rows of its lower triangle, packed one after the other."""


def packed_triangle_expand(packed, scale, full, LEN_2D):
    k = 0
    for i in range(LEN_2D):
        for j in range(i + 1):
            value = scale[i] * packed[k] * scale[j]
            full[i, j] = value
            full[j, i] = value
            k = k + 1
