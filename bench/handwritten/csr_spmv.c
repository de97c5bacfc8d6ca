/* y = A x by rows. */
#include <stdint.h>

void csr_spmv_fp64(const int32_t *restrict cols, const int64_t *restrict row_start, const double *restrict vals,
                   const double *restrict x, double *restrict y, const int64_t NC, const int64_t NNZ, const int64_t NR,
                   uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)NC;
    (void)NNZ;
    (void)workspace;
    (void)workspace_size;
    for (int64_t i = 0; i < NR; i++) {
        double sum = 0.0;
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++)
            sum += vals[e] * x[cols[e]];
        y[i] = sum;
    }
}
