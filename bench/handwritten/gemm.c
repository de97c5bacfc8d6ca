/* C = alpha A B + beta C, rows of B streamed through rows of C. */
#include <stdint.h>

void gemm_fp64(const double *restrict a, const double *restrict b, double *restrict c, const int64_t NI,
               const int64_t NJ, const int64_t NK, const double alpha, const double beta,
               uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    for (int64_t i = 0; i < NI; i++) {
        for (int64_t j = 0; j < NJ; j++)
            c[i * NJ + j] *= beta;
        for (int64_t k = 0; k < NK; k++) {
            const double factor = alpha * a[i * NK + k];
            for (int64_t j = 0; j < NJ; j++)
                c[i * NJ + j] += factor * b[k * NJ + j];
        }
    }
}
