"""Orthonormal two-dimensional discrete cosine transform (DCT-II), as products with the cosine matrices."""

import numpy as np


def dct_2d(image, spectrum, NX, NY):
    left = np.empty((NX, NX), dtype=image.dtype)
    right = np.empty((NY, NY), dtype=image.dtype)
    half = np.empty((NX, NY), dtype=image.dtype)
    for k in range(NX):
        for i in range(NX):
            left[k, i] = np.sqrt(2.0 / NX) * np.cos(np.pi * (k * (2 * i + 1) % (4 * NX)) / (2 * NX))
    left[0, :] = left[0, :] * np.sqrt(0.5)
    for k in range(NY):
        for i in range(NY):
            right[i, k] = np.sqrt(2.0 / NY) * np.cos(np.pi * (k * (2 * i + 1) % (4 * NY)) / (2 * NY))
    right[:, 0] = right[:, 0] * np.sqrt(0.5)
    half[:, :] = left @ image
    spectrum[:, :] = half @ right
