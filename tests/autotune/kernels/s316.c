#include <stdint.h>

void s316_fp64(const double *restrict a, double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double x = a[0];
    for (int64_t i = 1; i < LEN_1D; i++) {
        if (a[i] < x) {
            x = a[i];
        }
    }
    b[0] = x;
}
