/* The first of the largest elements. */
#include <stdint.h>

void argmax_with_index_fp64(const double *restrict a, int64_t *restrict out_index, double *restrict out_value,
                            const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    int64_t where = 0;
    double best = a[0];
    for (int64_t i = 1; i < LEN_1D; i++) {
        if (a[i] > best) {
            best = a[i];
            where = i;
        }
    }
    *out_index = where;
    *out_value = best;
}
