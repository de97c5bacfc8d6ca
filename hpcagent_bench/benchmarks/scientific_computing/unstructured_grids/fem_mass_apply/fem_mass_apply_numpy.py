"""The consistent mass matrix of linear triangles applied to a field, element by element, without assembly."""

import numpy as np


def fem_mass_apply(px, py, triangle, u, v, NN):
    for e in range(2 * NN):
        n0 = triangle[e, 0]
        n1 = triangle[e, 1]
        n2 = triangle[e, 2]
        twice_area = (px[n1] - px[n0]) * (py[n2] - py[n0]) - (px[n2] - px[n0]) * (py[n1] - py[n0])
        factor = abs(twice_area) / 24.0
        total = u[n0] + u[n1] + u[n2]
        v[n0] += factor * (total + u[n0])
        v[n1] += factor * (total + u[n1])
        v[n2] += factor * (total + u[n2])
