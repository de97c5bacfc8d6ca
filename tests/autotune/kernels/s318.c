#include <stdint.h>
#include <math.h>

void s318_fp64(const double *restrict a, double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double m = fabs(a[0]);
    int64_t at = 0;
    for (int64_t i = 1; i < LEN_1D; i++) {
        double v = fabs(a[i]);
        if (v > m) {
            m = v;
            at = i;
        }
    }
    b[0] = m + (double)at + 1.0;
}
