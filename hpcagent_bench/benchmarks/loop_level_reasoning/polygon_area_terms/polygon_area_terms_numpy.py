"""Twice the signed area under every edge of a closed polygon; the first edge comes from the last corner."""


def polygon_area_terms(x, y, area, LEN_1D):
    before = LEN_1D - 1
    for i in range(LEN_1D):
        area[i] = (x[i] + x[before]) * (y[i] - y[before])
        before = i
