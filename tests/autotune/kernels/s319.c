#include <stdint.h>

void s319_fp64(double *restrict a, double *restrict b, const double *restrict c, const double *restrict d, const double *restrict e, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double s = 0.0;
    for (int64_t i = 0; i < LEN_1D; i++) {
        a[i] = c[i] + d[i];
        s = s + a[i];
        b[i] = c[i] + e[i];
        s = s + b[i];
    }
    b[0] = s;
}
