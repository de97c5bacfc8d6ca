#include <stdint.h>

void s3111_fp64(const double *restrict a, double *restrict b, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double s = 0.0;
    for (int64_t i = 0; i < LEN_1D; i++) {
        if (a[i] > 0.0) {
            s = s + a[i];
        }
    }
    b[0] = s;
}
