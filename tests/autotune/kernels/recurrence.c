#include <stdint.h>

void recurrence_fp64(double *restrict a, const double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 1; i < LEN_1D; i++) {
        a[i] = 0.5 * a[i - 1] + b[i];
    }
}
