"""Holt's linear smoothing: level and trend of a series, two coupled recurrences with gains 0.4 and 0.3."""


def holt_level_trend(x, level, trend, LEN_1D):
    for i in range(1, LEN_1D):
        level[i] = 0.4 * x[i] + 0.6 * (level[i - 1] + trend[i - 1])
        trend[i] = 0.3 * (level[i] - level[i - 1]) + 0.7 * trend[i - 1]
