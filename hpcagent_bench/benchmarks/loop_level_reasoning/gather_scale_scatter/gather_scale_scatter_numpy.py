"""Gather through one permutation, scale, scatter through another: y[put[i]] = w[i] * x[take[i]]."""


def gather_scale_scatter(x, w, take, put, y, LEN_1D):
    for i in range(LEN_1D):
        y[put[i]] = w[i] * x[take[i]]
