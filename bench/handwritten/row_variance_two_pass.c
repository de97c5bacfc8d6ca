/* Mean of each row, then the mean square distance from it. */
#include <stdint.h>

void row_variance_two_pass_fp64(const double *restrict a, double *restrict mean, double *restrict variance,
                                const int64_t COLS, const int64_t ROWS, uint8_t *restrict workspace,
                                const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    for (int64_t i = 0; i < ROWS; i++) {
        const double *row = a + i * COLS;
        double sum = 0.0;
        for (int64_t j = 0; j < COLS; j++)
            sum += row[j];
        const double centre = sum / (double)COLS;
        double squares = 0.0;
        for (int64_t j = 0; j < COLS; j++) {
            const double distance = row[j] - centre;
            squares += distance * distance;
        }
        mean[i] = centre;
        variance[i] = squares / (double)COLS;
    }
}
