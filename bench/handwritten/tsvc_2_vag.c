/* a = b in the order of ip. */
#include <stdint.h>

void tsvc_2_vag_fp64(double *restrict a, const double *restrict b, const int32_t *restrict ip, const int64_t LEN_1D,
                     uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    for (int64_t i = 0; i < LEN_1D; i++)
        a[i] = b[ip[i]];
}
