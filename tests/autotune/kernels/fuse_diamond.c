#include <stdint.h>
#include <stdlib.h>

void fuse_diamond_fp64(const double *restrict a, double *restrict out, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double *restrict t = (double *)malloc((size_t)LEN_1D * sizeof(double));
    double *restrict p = (double *)malloc((size_t)LEN_1D * sizeof(double));
    double *restrict m = (double *)malloc((size_t)LEN_1D * sizeof(double));
    for (int64_t i = 0; i < LEN_1D; i++) {
        t[i] = a[i] * a[i];
    }
    for (int64_t i = 0; i < LEN_1D; i++) {
        p[i] = t[i] + 1.0;
    }
    for (int64_t i = 0; i < LEN_1D; i++) {
        m[i] = t[i] - 1.0;
    }
    for (int64_t i = 0; i < LEN_1D; i++) {
        out[i] = p[i] * m[i];
    }
    free(t);
    free(p);
    free(m);
}
