"""Counts of values per equal bin of [0, 1), and the largest height seen in every bin."""


def histogram_with_peaks(x, height, counts, peak, BINS, LEN_1D):
    for b in range(BINS):
        counts[b] = 0
    for i in range(LEN_1D):
        slot = min(int(x[i] * BINS), BINS - 1)
        counts[slot] = counts[slot] + 1
        if height[i] > peak[slot]:
            peak[slot] = height[i]
