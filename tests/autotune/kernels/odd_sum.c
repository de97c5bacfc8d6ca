#include <stdint.h>

void odd_sum_fp64(const double *restrict a, double *restrict out, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double s = 0.0;
    for (int64_t i = 1; i < LEN_1D; i += 2) {
        s = s + a[i];
    }
    out[0] = s;
}
