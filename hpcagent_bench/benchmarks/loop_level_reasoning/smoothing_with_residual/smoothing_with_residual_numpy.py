"""Exponential smoothing of a signal, and what the smoothed past leaves unexplained, in one loop."""


def smoothing_with_residual(x, smooth, residual, ALPHA, LEN_1D):
    level = smooth[0]
    for i in range(LEN_1D):
        residual[i] = x[i] - level
        level = level + ALPHA * (x[i] - level)
        smooth[i] = level
