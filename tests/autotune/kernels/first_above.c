#include <stdint.h>

void first_above_fp64(const double *restrict a, int64_t *restrict at, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    int64_t found = -1;
    for (int64_t i = 0; i < LEN_1D; i++) {
        if (a[i] > 0.9) {
            found = i;
            break;
        }
    }
    at[0] = found;
}
