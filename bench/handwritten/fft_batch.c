/* Radix-2 FFT of every row in place, decimation in time: bit-reversed order, then butterflies. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static void transform(double *restrict re, double *restrict im, const double *restrict cosine,
                      const double *restrict sine, const int64_t n)
{
    int64_t mirror = 0;
    for (int64_t k = 1; k < n; k++) {
        int64_t bit = n >> 1;
        for (; mirror & bit; bit >>= 1)
            mirror ^= bit;
        mirror |= bit;
        if (k < mirror) {
            const double r = re[k], i = im[k];
            re[k] = re[mirror];
            im[k] = im[mirror];
            re[mirror] = r;
            im[mirror] = i;
        }
    }
    for (int64_t half = 1; half < n; half *= 2) {
        const int64_t stride = n / (2 * half);
        for (int64_t offset = 0; offset < half; offset++) {
            const double c = cosine[offset * stride], s = sine[offset * stride];
            for (int64_t top = offset; top < n; top += 2 * half) {
                const int64_t low = top + half;
                const double r = c * re[low] - s * im[low];
                const double i = c * im[low] + s * re[low];
                re[low] = re[top] - r;
                im[low] = im[top] - i;
                re[top] += r;
                im[top] += i;
            }
        }
    }
}

void fft_batch_fp64(double *restrict im, double *restrict re, const int64_t BATCH, const int64_t LEN,
                    uint8_t *restrict workspace, const int64_t workspace_size)
{
    (void)workspace;
    (void)workspace_size;
    double *cosine = malloc((size_t)LEN * sizeof *cosine);
    double *sine = malloc((size_t)LEN * sizeof *sine);
    for (int64_t t = 0; t < LEN; t++) {
        const double angle = 2.0 * M_PI * (double)t / (double)LEN;
        cosine[t] = cos(angle);
        sine[t] = -sin(angle);
    }
    for (int64_t row = 0; row < BATCH; row++)
        transform(re + row * LEN, im + row * LEN, cosine, sine, LEN);
    free(cosine);
    free(sine);
}
