/* On and above the diagonal, row by row: plus half the sum of the upper and left neighbours. */
#include <stdint.h>

void wf_triangular_fp64(double *restrict a, const int64_t LEN_2D, uint8_t *restrict workspace,
                        const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    for (int64_t i = 1; i < LEN_2D; i++) {
        const double *above = a + (i - 1) * LEN_2D;
        double *row = a + i * LEN_2D;
        for (int64_t j = i; j < LEN_2D; j++)
            row[j] += 0.5 * (above[j] + row[j - 1]);
    }
}
