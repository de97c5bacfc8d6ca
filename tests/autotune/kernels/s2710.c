#include <stdint.h>

void s2710_fp64(double *restrict a, double *restrict b, double *restrict c, const double *restrict d, const double *restrict e, const double *restrict x, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_1D; i++) {
        if (a[i] > b[i]) {
            a[i] = a[i] + b[i] * d[i];
            if (LEN_1D > 10) {
                c[i] = c[i] + d[i] * d[i];
            } else {
                c[i] = d[i] * e[i] + 1.0;
            }
        } else {
            b[i] = a[i] + e[i] * e[i];
            if (x[0] > 0.0) {
                c[i] = a[i] + d[i] * d[i];
            } else {
                c[i] = c[i] + e[i] * e[i];
            }
        }
    }
}
