#include <stdint.h>

void s2233_fp64(double *restrict aa, double *restrict bb, const double *restrict cc, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 1; i < LEN_2D; i++) {
        for (int64_t j = 1; j < LEN_2D; j++) {
            aa[j * LEN_2D + i] = aa[(j - 1) * LEN_2D + i] + cc[j * LEN_2D + i];
        }
        for (int64_t j = 1; j < LEN_2D; j++) {
            bb[i * LEN_2D + j] = bb[(i - 1) * LEN_2D + j] + cc[i * LEN_2D + j];
        }
    }
}
