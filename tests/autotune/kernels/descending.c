#include <stdint.h>

void descending_fp64(double *restrict a, const double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = LEN_1D - 2; i > 0 - 1; i--) {
        a[i + 1] = a[i] + b[i];
    }
}
