"""Below the midpoint a signal is folded onto its mirror image; above, it is scaled by what was folded."""


def fold_across_midpoint(x, y, LEN_1D):
    half = LEN_1D // 2
    for i in range(LEN_1D):
        if i < half:
            y[i] = x[i] + x[LEN_1D - 1 - i]
        else:
            y[i] = x[i] * y[i - half]
