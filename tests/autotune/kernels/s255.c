#include <stdint.h>

void s255_fp64(double *restrict a, const double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double x = b[LEN_1D - 1];
    double y = b[LEN_1D - 2];
    for (int64_t i = 0; i < LEN_1D; i++) {
        a[i] = (b[i] + x + y) * 0.333;
        y = x;
        x = b[i];
    }
}
