#include <stdint.h>

void s3110_fp64(const double *restrict aa, double *restrict bb, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double m = aa[0];
    int64_t x = 0;
    int64_t y = 0;
    for (int64_t i = 0; i < LEN_2D; i++) {
        for (int64_t j = 0; j < LEN_2D; j++) {
            if (aa[i * LEN_2D + j] > m) {
                m = aa[i * LEN_2D + j];
                x = i;
                y = j;
            }
        }
    }
    bb[0] = m + (double)(x + 1) + (double)(y + 1);
}
