"""Third backward difference of a periodic signal, in place: three carried scalars hold the old values."""


def circular_third_difference(x, LEN_1D):
    back_one = x[LEN_1D - 1]
    back_two = x[(2 * LEN_1D - 2) % LEN_1D]
    back_three = x[(3 * LEN_1D - 3) % LEN_1D]
    for i in range(LEN_1D):
        now = x[i]
        x[i] = now - 3.0 * back_one + 3.0 * back_two - back_three
        back_three = back_two
        back_two = back_one
        back_one = now
