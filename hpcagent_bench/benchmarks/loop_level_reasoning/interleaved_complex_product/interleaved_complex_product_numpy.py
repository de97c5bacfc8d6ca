"""Product of complex numbers stored as pairs: real part at 2 * i, imaginary part at 2 * i + 1."""


def interleaved_complex_product(z, w, product, LEN_1D):
    for i in range(LEN_1D):
        product[2 * i] = z[2 * i] * w[2 * i] - z[2 * i + 1] * w[2 * i + 1]
        product[2 * i + 1] = z[2 * i] * w[2 * i + 1] + z[2 * i + 1] * w[2 * i]
