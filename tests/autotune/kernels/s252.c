#include <stdint.h>

void s252_fp64(double *restrict a, const double *restrict b, const double *restrict c, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double t = 0.0;
    for (int64_t i = 0; i < LEN_1D; i++) {
        double s = b[i] * c[i];
        a[i] = s + t;
        t = s;
    }
}
