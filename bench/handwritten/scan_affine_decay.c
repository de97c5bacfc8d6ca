/* y_i = c_i y_(i-1) + x_i, the level kept in a register. */
#include <stdint.h>

void scan_affine_decay_fp64(const double *restrict c, const double *restrict x, double *restrict y,
                            const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    double level = x[0];
    y[0] = level;
    for (int64_t i = 1; i < LEN_1D; i++) {
        level = c[i] * level + x[i];
        y[i] = level;
    }
}
