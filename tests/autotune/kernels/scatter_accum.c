#include <stdint.h>

void scatter_accum_fp64(double *restrict bins, const int64_t *restrict ip, const double *restrict src, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_1D; i++) {
        bins[ip[i]] = bins[ip[i]] + src[i];
    }
}
