"""Tomographic reconstruction by SIRT: image += C A^T R (sinogram - A image), from a blank image.

Row ``ray`` of A, in compressed sparse rows, holds the lengths of one ray in the pixels it crosses. R and C
divide by the sums of the rows and of the columns; what no ray crosses stays blank.
"""

import numpy as np


def tomography_sirt(image, lengths, pixels, ray_start, sinogram, NNZ, NPIX, NRAY, STEPS):
    coverage = np.zeros(NPIX, dtype=image.dtype)
    change = np.empty(NPIX, dtype=image.dtype)
    path = np.zeros(NRAY, dtype=image.dtype)
    for ray in range(NRAY):
        for e in range(ray_start[ray], ray_start[ray + 1]):
            path[ray] += lengths[e]
            coverage[pixels[e]] += lengths[e]
    image[:] = 0.0
    for _step in range(STEPS):
        change[:] = 0.0
        for ray in range(NRAY):
            misfit = sinogram[ray]
            for e in range(ray_start[ray], ray_start[ray + 1]):
                misfit -= lengths[e] * image[pixels[e]]
            if path[ray] > 0.0:
                misfit = misfit / path[ray]
            for e in range(ray_start[ray], ray_start[ray + 1]):
                change[pixels[e]] += lengths[e] * misfit
        for p in range(NPIX):
            if coverage[p] > 0.0:
                image[p] += change[p] / coverage[p]
