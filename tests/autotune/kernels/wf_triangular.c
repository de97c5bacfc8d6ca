#include <stdint.h>

void wf_triangular_fp64(double *restrict aa, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 1; i < LEN_2D; i++) {
        for (int64_t j = i; j < LEN_2D; j++) {
            aa[i * LEN_2D + j] = aa[i * LEN_2D + j] + 0.5 * (aa[(i - 1) * LEN_2D + j] + aa[i * LEN_2D + j - 1]);
        }
    }
}
