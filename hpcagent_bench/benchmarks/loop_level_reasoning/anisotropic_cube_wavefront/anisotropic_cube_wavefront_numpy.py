"""In-place sweep of a cube over the three neighbours before a point, each axis with a weight of its own."""


def anisotropic_cube_wavefront(a, LEN_3D):
    for i in range(1, LEN_3D):
        for j in range(1, LEN_3D):
            for k in range(1, LEN_3D):
                a[i, j, k] = (
                    0.25 * a[i, j, k] + 0.35 * a[i - 1, j, k] + 0.25 * a[i, j - 1, k] + 0.15 * a[i, j, k - 1]
                )
