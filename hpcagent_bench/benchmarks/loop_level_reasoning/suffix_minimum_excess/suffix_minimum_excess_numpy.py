"""How far every element lies above the least of those from it to the end, found from the end on."""


def suffix_minimum_excess(x, excess, LEN_1D):
    low = x[LEN_1D - 1]
    for i in range(LEN_1D - 1, -1, -1):
        if x[i] < low:
            low = x[i]
        excess[i] = x[i] - low
