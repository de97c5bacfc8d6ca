#include <stdint.h>
#include <stdlib.h>

void stencil_temp_fp64(const double *restrict a, double *restrict out, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double *restrict t = (double *)malloc((size_t)LEN_1D * sizeof(double));
    for (int64_t i = 1; i < LEN_1D - 1; i++) {
        t[i] = a[i - 1] + a[i] + a[i + 1];
    }
    for (int64_t i = 1; i < LEN_1D - 2; i++) {
        out[i] = t[i] * t[i + 1];
    }
    free(t);
}
