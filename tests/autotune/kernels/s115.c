#include <stdint.h>

void s115_fp64(double *restrict a, const double *restrict aa, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t j = 0; j < LEN_2D; j++) {
        for (int64_t i = j + 1; i < LEN_2D; i++) {
            a[i] = a[i] - aa[j * LEN_2D + i] * a[j];
        }
    }
}
