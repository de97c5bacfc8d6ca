/* Gotoh's local alignment: scores of all cells, gaps at 4 to open and 1 to extend, the best score. */
#include <stdint.h>
#include <stdlib.h>

static double larger(const double a, const double b)
{
    return a > b ? a : b;
}

void local_alignment_affine_fp64(const int8_t *restrict a, const int8_t *restrict b, double *restrict best,
                                 double *restrict h, const double *restrict similarity, const int64_t M, const int64_t N,
                                 uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    double *up = malloc((size_t)(N + 1) * sizeof *up);
    for (int64_t j = 0; j <= N; j++) {
        up[j] = -1.0e6;
        h[j] = 0.0;
    }
    double highest = 0.0;
    for (int64_t i = 1; i <= M; i++) {
        const double *above = h + (i - 1) * (N + 1);
        const double *match = similarity + a[i - 1] * 20;
        double *row = h + i * (N + 1);
        double left = -1.0e6;
        row[0] = 0.0;
        for (int64_t j = 1; j <= N; j++) {
            up[j] = larger(up[j] - 1.0, above[j] - 4.0);
            left = larger(left - 1.0, row[j - 1] - 4.0);
            double score = larger(above[j - 1] + match[b[j - 1]], up[j]);
            score = larger(larger(score, left), 0.0);
            row[j] = score;
            highest = larger(highest, score);
        }
    }
    *best = highest;
    free(up);
}
