#include <stdint.h>

void matmul_fp64(const double *restrict aa, const double *restrict bb, double *restrict cc, const int64_t LEN_2D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    for (int64_t i = 0; i < LEN_2D; i++) {
        for (int64_t j = 0; j < LEN_2D; j++) {
            for (int64_t k = 0; k < LEN_2D; k++) {
                cc[i * LEN_2D + j] = cc[i * LEN_2D + j] + aa[i * LEN_2D + k] * bb[k * LEN_2D + j];
            }
        }
    }
}
