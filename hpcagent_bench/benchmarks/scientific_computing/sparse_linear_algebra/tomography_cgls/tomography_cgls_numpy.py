"""Tomographic reconstruction: the image that minimises |A image - sinogram|^2 + damping |image|^2.

Row ``ray`` of A, in compressed sparse rows, holds the path lengths of one ray through the pixels it crosses.
Conjugate gradients on the normal equations (CGLS) need A and its transpose only as products.
"""

import numpy as np


def tomography_cgls(image, lengths, pixels, ray_start, sinogram, damping, NNZ, NPIX, NRAY, STEPS):
    misfit = np.empty(NRAY, dtype=image.dtype)
    shadow = np.empty(NRAY, dtype=image.dtype)
    gradient = np.zeros(NPIX, dtype=image.dtype)
    search = np.empty(NPIX, dtype=image.dtype)
    image[:] = 0.0
    misfit[:] = sinogram
    for ray in range(NRAY):
        for e in range(ray_start[ray], ray_start[ray + 1]):
            gradient[pixels[e]] += lengths[e] * misfit[ray]
    search[:] = gradient
    rho = np.dot(gradient, gradient)
    goal = 1e-24 * rho
    for _step in range(STEPS):
        if rho <= goal:
            break
        for ray in range(NRAY):
            shadow[ray] = 0.0
            for e in range(ray_start[ray], ray_start[ray + 1]):
                shadow[ray] += lengths[e] * search[pixels[e]]
        stride = rho / (np.dot(shadow, shadow) + damping * np.dot(search, search))
        image[:] = image + stride * search
        misfit[:] = misfit - stride * shadow
        gradient[:] = -damping * image
        for ray in range(NRAY):
            for e in range(ray_start[ray], ray_start[ray + 1]):
                gradient[pixels[e]] += lengths[e] * misfit[ray]
        fresh = np.dot(gradient, gradient)
        search[:] = gradient + (fresh / rho) * search
        rho = fresh
