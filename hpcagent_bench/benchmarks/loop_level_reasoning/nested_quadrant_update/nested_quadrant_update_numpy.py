"""Every quadrant of the plane has an update of its own, the fourth one two."""


def nested_quadrant_update(x, y, z, LEN_1D):
    for i in range(LEN_1D):
        if x[i] > 0.0:
            if y[i] > 0.0:
                z[i] = z[i] + x[i] * y[i]
            elif x[i] + y[i] > 0.0:
                z[i] = z[i] - y[i]
            else:
                z[i] = z[i] * x[i]
        else:
            if y[i] > 0.0:
                z[i] = x[i] - y[i]
            else:
                z[i] = 0.5 * z[i]
