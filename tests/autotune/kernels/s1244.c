#include <stdint.h>

void s1244_fp64(double *restrict a, const double *restrict b, const double *restrict c, double *restrict d, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_1D - 1; i++) {
        a[i] = b[i] + c[i] * c[i] + b[i] * b[i] + c[i];
        d[i] = a[i] + a[i + 1];
    }
}
