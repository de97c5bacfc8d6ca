#include <stdint.h>

void war_unit_fp64(double *restrict a, const double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_1D - 1; i++) {
        a[i] = a[i + 1] + b[i];
    }
}
