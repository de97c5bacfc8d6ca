#include <stdint.h>

void s323_fp64(double *restrict a, double *restrict b, const double *restrict c, const double *restrict d, const double *restrict e, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 1; i < LEN_1D; i++) {
        a[i] = b[i - 1] + c[i] * d[i];
        b[i] = a[i] + c[i] * e[i];
    }
}
