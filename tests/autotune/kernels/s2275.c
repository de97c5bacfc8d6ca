#include <stdint.h>

void s2275_fp64(double *restrict a, double *restrict aa, const double *restrict b, const double *restrict bb, const double *restrict c, const double *restrict cc, const double *restrict d, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_2D; i++) {
        for (int64_t j = 0; j < LEN_2D; j++) {
            aa[j * LEN_2D + i] = aa[j * LEN_2D + i] + bb[j * LEN_2D + i] * cc[j * LEN_2D + i];
        }
        a[i] = b[i] + c[i] * d[i];
    }
}
