#include <stdint.h>

void gemv_fp64(const double *restrict aa, const double *restrict x, double *restrict y, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_2D; i++) {
        double s = 0.0;
        for (int64_t j = 0; j < LEN_2D; j++) {
            s = s + aa[i * LEN_2D + j] * x[j];
        }
        y[i] = s;
    }
}
