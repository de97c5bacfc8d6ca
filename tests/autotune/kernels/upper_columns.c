#include <stdint.h>

void upper_columns_fp64(double *restrict aa, const double *restrict bb, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_2D; i++) {
        for (int64_t j = 0; j < i + 1; j++) {
            aa[j * LEN_2D + i] = 2.0 * aa[j * LEN_2D + i] + bb[i];
        }
    }
}
