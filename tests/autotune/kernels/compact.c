#include <stdint.h>

void compact_fp64(int64_t *restrict count, double *restrict out, const double *restrict src, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    int64_t k = 0;
    for (int64_t i = 0; i < LEN_1D; i++) {
        if (src[i] > 0.0) {
            out[k] = src[i];
            k = k + 1;
        }
    }
    count[0] = k;
}
