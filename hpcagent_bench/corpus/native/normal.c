/* Normal and lognormal numbers, the same on every machine: additions, multiplications, divisions and square roots
 * of doubles alone, no function of a mathematical library. A draw is z * factor + shift (lognormal: exp(z / 2) in
 * the place of z), kept within [lo, hi] and folded into its sign domain.
 * Method: the ziggurat of Marsaglia and Tsang (2000) with 256 layers and 52-bit uniforms (Doornik 2005). */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "crew.h"
#include "stream.h"

#define LAYERS 256
#define LAYER_AREA 4.92867323399e-3
#define TAIL_START 3.6541528853610088
#define LOGNORMAL_SIGMA 0.5

typedef struct {
    void *out;
    int64_t count;
    uint64_t key;
    double factor, shift, lo, hi;
    int lognormal, fold;
} normal_job;

static double layer_edge[LAYERS + 1];  /* x of each layer, falling; the last is 0 */
static double layer_ratio[LAYERS];     /* edge of the next layer over that of this one */
static pthread_once_t layers_once = PTHREAD_ONCE_INIT;

/* exp(x) for |x| <= 700: x = k ln 2 + r, the Taylor series of r, whose remainder is below 2^-56, then 2^k. */
static inline double plain_exp(double x)
{
    const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    const double to_integer = 0x1.8p52;
    double shifted = x * 0x1.71547652b82fep0 + to_integer;
    double k = shifted - to_integer;
    double r = (x - k * ln2_high) - k * ln2_low;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023u) << 52; /* the low bits of `shifted` hold k */
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* log(x) for normal x > 0: x = m 2^k with m near 1, then the series of 2 artanh((m - 1) / (m + 1)). */
static double plain_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 0.0;
    for (int term = 27; term >= 1; term -= 2)
        sum = sum * square + 1.0 / term;
    return (double)k * 0x1.62e42fefa39efp-1 + 2.0 * s * sum;
}

static void make_layers(void)
{
    double density = plain_exp(-0.5 * TAIL_START * TAIL_START);
    layer_edge[0] = LAYER_AREA / density;
    layer_edge[1] = TAIL_START;
    for (int i = 2; i < LAYERS; i++) {
        double next = LAYER_AREA / layer_edge[i - 1] + density;
        layer_edge[i] = sqrt(-2.0 * plain_log(next));
        density = next;
    }
    layer_edge[LAYERS] = 0.0;
    for (int i = 0; i < LAYERS; i++)
        layer_ratio[i] = layer_edge[i + 1] / layer_edge[i];
}

/* A word's layer is its low byte, its uniform number of [-1, 1) the upper 52 bits. */
static inline double word_unit(uint64_t word)
{
    uint64_t bits = (word >> 12) | 0x3ff0000000000000u;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return (unit - 1.5) * 2.0;
}

/* A uniform number of (0, 1). */
static double open_unit(scalar_stream *s)
{
    return 0.5 * word_unit(scalar_next(s)) + (0.5 + 0x1p-54);
}

/* The number of a word that fell outside its layer's inner part; further words come from a stream of their own. */
static double settle_word(uint64_t word, scalar_stream *s)
{
    for (;; word = scalar_next(s)) {
        int layer = (int)(word & 0xff);
        double u = word_unit(word), z = u * layer_edge[layer];
        if (fabs(u) < layer_ratio[layer])
            return z;
        if (layer == 0) {
            double x, y;
            do {
                x = -plain_log(open_unit(s)) / TAIL_START;
                y = -plain_log(open_unit(s));
            } while (2.0 * y <= x * x);
            return u < 0.0 ? -(TAIL_START + x) : TAIL_START + x;
        }
        double outer = plain_exp(-0.5 * (layer_edge[layer] * layer_edge[layer] - z * z));
        double inner = plain_exp(-0.5 * (layer_edge[layer + 1] * layer_edge[layer + 1] - z * z));
        if (inner + open_unit(s) * (outer - inner) < 1.0)
            return z;
    }
}

static void normal_batch(const uint64_t *word, double *z, scalar_stream *more)
{
    uint8_t rejected[STREAM_BATCH];
    for (int i = 0; i < STREAM_BATCH; i++) {
        int64_t layer = (int64_t)(word[i] & 0xff);
        double u = word_unit(word[i]);
        z[i] = u * layer_edge[layer];
        rejected[i] = fabs(u) >= layer_ratio[layer];
    }
    for (int i = 0; i < STREAM_BATCH; i += 8) {
        uint64_t any;
        memcpy(&any, rejected + i, sizeof any);
        for (int j = i; any != 0 && j < i + 8; j++)
            if (rejected[j])
                z[j] = settle_word(word[j], more);
    }
}

static void normal_shape(const normal_job *job, double *z)
{
    double factor = job->factor, shift = job->shift, lo = job->lo, hi = job->hi;
    if (job->lognormal)
        for (int i = 0; i < STREAM_BATCH; i++)
            z[i] = plain_exp(LOGNORMAL_SIGMA * z[i]);
    for (int i = 0; i < STREAM_BATCH; i++) {
        double v = z[i] * factor + shift;
        v = v > hi ? hi : v;
        z[i] = v < lo ? lo : v;
    }
}

#define DEFINE_NORMAL(name, real, folded)                                                    \
    static void name##_block(void *context, int64_t block)                                   \
    {                                                                                        \
        const normal_job *job = context;                                                     \
        int64_t begin = block * BLOCK;                                                       \
        int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;               \
        uint64_t word[STREAM_BATCH];                                                         \
        stream s;                                                                            \
        scalar_stream more;                                                                  \
        stream_seed(&s, job->key, (uint64_t)block);                                          \
        scalar_seed(&more, ~job->key, (uint64_t)block);                                      \
        for (int64_t at = begin; at < end; at += STREAM_BATCH) {                             \
            int64_t n = end - at < STREAM_BATCH ? end - at : STREAM_BATCH;                   \
            double z[STREAM_BATCH];                                                          \
            real out[STREAM_BATCH] __attribute__((aligned(64)));                             \
            stream_refill(&s, word);                                                         \
            normal_batch(word, z, &more);                                                    \
            normal_shape(job, z);                                                            \
            for (int i = 0; i < STREAM_BATCH; i++)                                           \
                out[i] = (real)z[i];                                                         \
            folded(out, n, job->fold);                                                       \
            put((real *)job->out + at, out, n * (int64_t)sizeof *out);                       \
        }                                                                                    \
        put_done();                                                                          \
    }                                                                                        \
    void draw_##name(real *out, int64_t count, uint64_t key, int lognormal, double factor, double shift, double lo, \
                     double hi, int fold, int threads)                                       \
    {                                                                                        \
        normal_job job = {.out = out, .count = count, .key = key, .factor = factor, .shift = shift, \
                          .lo = lo, .hi = hi, .lognormal = lognormal, .fold = fold};         \
        pthread_once(&layers_once, make_layers);                                             \
        crew_run(threads, block_count(count), name##_block, &job);                           \
    }

DEFINE_NORMAL(normal_f64, double, fold_f64)
DEFINE_NORMAL(normal_f32, float, fold_f32)
