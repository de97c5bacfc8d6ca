#include <stdint.h>

void argmax_fp64(const double *restrict a, int64_t *restrict out_index, double *restrict out_value, const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    double best = a[0];
    int64_t where = 0;
    for (int64_t i = 1; i < LEN_1D; i++) {
        if (a[i] > best) {
            best = a[i];
            where = i;
        }
    }
    out_value[0] = best;
    out_index[0] = where;
}
