/* Fills arrays with uniform numbers at memory speed.
 * Every block of BLOCK elements has a stream of its own, so the values depend on (key, position) alone and never
 * on the thread count. A word becomes a number by bit pattern, one subtraction and one multiplication (exact, then
 * rounded once), so the values are the same on every machine; build with -ffp-contract=off. */
#include <float.h>
#include <math.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#include "crew.h"
#include "stream.h"

#define BLOCK 32768

enum fold { FOLD_NONE = 0, FOLD_NONNEG = 1, FOLD_POSITIVE = 2, FOLD_NONPOS = 3, FOLD_NEGATIVE = 4 };

typedef struct {
    void *out;
    int64_t count;
    uint64_t key;
    double lo, hi;
    int fold;
    int64_t int_lo;
    uint64_t span;
} draw_job;

static int64_t block_count(int64_t count)
{
    return (count + BLOCK - 1) / BLOCK;
}

/* Copies past the caches where the address allows: an input is larger than they are, and a plain store would read
 * every line before it writes it. */
static inline void put(void *to, const void *from, int64_t bytes)
{
#ifdef __AVX__
    if (((uintptr_t)to | (uint64_t)bytes) % 32 == 0) {
        for (int64_t i = 0; i < bytes; i += 32) {
            __m256i part = _mm256_load_si256((const __m256i *)((const char *)from + i));
            _mm256_stream_si256((__m256i *)((char *)to + i), part);
        }
        return;
    }
#endif
    memcpy(to, from, (size_t)bytes);
}

/* Ends a block: what was stored past the caches is visible before the block counts as done. */
static inline void put_done(void)
{
#ifdef __AVX__
    _mm_sfence();
#endif
}

#define DEFINE_FOLD(name, real, tiny, absolute)                         \
    static void name(real *x, int64_t n, int fold)                      \
    {                                                                   \
        if (fold == FOLD_NONE)                                          \
            return;                                                     \
        real least = fold == FOLD_POSITIVE || fold == FOLD_NEGATIVE ? (tiny) : (real)0; \
        real sign = fold == FOLD_NONPOS || fold == FOLD_NEGATIVE ? (real)-1 : (real)1;  \
        for (int64_t i = 0; i < n; i++) {                               \
            real v = absolute(x[i]);                                    \
            x[i] = sign * (v < least ? least : v);                      \
        }                                                               \
    }

DEFINE_FOLD(fold_f64, double, DBL_MIN, fabs)
DEFINE_FOLD(fold_f32, float, FLT_MIN, fabsf)

static void uniform_f64_block(void *context, int64_t block)
{
    const draw_job *job = context;
    int64_t begin = block * BLOCK;
    int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;
    double width = job->hi - job->lo, middle = job->lo + 0.5 * width, lo = job->lo, hi = job->hi;
    uint64_t word[STREAM_BATCH];
    stream s;
    stream_seed(&s, job->key, (uint64_t)block);
    for (int64_t at = begin; at < end; at += STREAM_BATCH) {
        int64_t n = end - at < STREAM_BATCH ? end - at : STREAM_BATCH;
        double out[STREAM_BATCH] __attribute__((aligned(64)));
        stream_refill(&s, word);
        for (int64_t i = 0; i < n; i++) {
            uint64_t bits = (word[i] >> 12) | 0x3ff0000000000000u; /* [1, 2) */
            double unit;
            memcpy(&unit, &bits, sizeof unit);
            double v = (unit - 1.5) * width + middle;
            v = v > hi ? hi : v;
            out[i] = v < lo ? lo : v;
        }
        fold_f64(out, n, job->fold);
        put((double *)job->out + at, out, n * (int64_t)sizeof *out);
    }
    put_done();
}

static void uniform_f32_block(void *context, int64_t block)
{
    const draw_job *job = context;
    int64_t begin = block * BLOCK;
    int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;
    float lo = (float)job->lo, hi = (float)job->hi, width = hi - lo, middle = lo + 0.5f * width;
    uint64_t word[STREAM_BATCH];
    uint32_t half[2 * STREAM_BATCH];
    stream s;
    stream_seed(&s, job->key, (uint64_t)block);
    for (int64_t at = begin; at < end; at += 2 * STREAM_BATCH) {
        int64_t n = end - at < 2 * STREAM_BATCH ? end - at : 2 * STREAM_BATCH;
        float out[2 * STREAM_BATCH] __attribute__((aligned(64)));
        stream_refill(&s, word);
        memcpy(half, word, sizeof half);
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits = (half[i] >> 9) | 0x3f800000u; /* [1, 2) */
            float unit;
            memcpy(&unit, &bits, sizeof unit);
            float v = (unit - 1.5f) * width + middle;
            v = v > hi ? hi : v;
            out[i] = v < lo ? lo : v;
        }
        fold_f32(out, n, job->fold);
        put((float *)job->out + at, out, n * (int64_t)sizeof *out);
    }
    put_done();
}

void draw_uniform_f64(double *out, int64_t count, uint64_t key, double lo, double hi, int fold, int threads)
{
    draw_job job = {.out = out, .count = count, .key = key, .lo = lo, .hi = hi, .fold = fold};
    crew_run(threads, block_count(count), uniform_f64_block, &job);
}

void draw_uniform_f32(float *out, int64_t count, uint64_t key, double lo, double hi, int fold, int threads)
{
    draw_job job = {.out = out, .count = count, .key = key, .lo = lo, .hi = hi, .fold = fold};
    crew_run(threads, block_count(count), uniform_f32_block, &job);
}

/* A uniform integer of [0, span): multiply and reject (Lemire 2019), so no value is favoured. Spans up to 2^32 take
 * half a word each, many at once; the few rejected ones are drawn again from a stream of their own. */
static void below_batch(const uint32_t *half, int64_t n, uint64_t span, uint32_t *out, scalar_stream *more)
{
    uint32_t floor = (uint32_t)((UINT64_C(1) << 32) % span);
    int64_t rejected = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t product = half[i] * span;
        out[i] = (uint32_t)(product >> 32);
        rejected += (uint32_t)product < floor;
    }
    for (int64_t i = 0; rejected > 0 && i < n; i++)
        if ((uint32_t)(half[i] * span) < floor) {
            out[i] = (uint32_t)scalar_below(more, span);
            rejected--;
        }
}

#define DEFINE_INTEGERS(name, integer)                                                       \
    static void name##_narrow(const draw_job *job, int64_t block, int64_t begin, int64_t end) \
    {                                                                                        \
        uint64_t word[STREAM_BATCH];                                                         \
        uint32_t half[2 * STREAM_BATCH], below[2 * STREAM_BATCH];                            \
        stream s;                                                                            \
        scalar_stream more;                                                                  \
        stream_seed(&s, job->key, (uint64_t)block);                                          \
        scalar_seed(&more, ~job->key, (uint64_t)block);                                      \
        for (int64_t at = begin; at < end; at += 2 * STREAM_BATCH) {                         \
            int64_t n = end - at < 2 * STREAM_BATCH ? end - at : 2 * STREAM_BATCH;           \
            integer out[2 * STREAM_BATCH] __attribute__((aligned(64)));                      \
            stream_refill(&s, word);                                                         \
            memcpy(half, word, sizeof half);                                                 \
            below_batch(half, n, job->span, below, &more);                                   \
            for (int64_t i = 0; i < n; i++)                                                  \
                out[i] = (integer)((uint64_t)job->int_lo + below[i]);                        \
            put((integer *)job->out + at, out, n * (int64_t)sizeof *out);                    \
        }                                                                                    \
        put_done();                                                                          \
    }                                                                                        \
    static void name##_block(void *context, int64_t block)                                   \
    {                                                                                        \
        const draw_job *job = context;                                                       \
        int64_t begin = block * BLOCK;                                                       \
        int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;               \
        integer *out = job->out;                                                             \
        scalar_stream s;                                                                     \
        if (job->span <= UINT64_C(1) << 32) {                                                \
            name##_narrow(job, block, begin, end);                                           \
            return;                                                                          \
        }                                                                                    \
        scalar_seed(&s, job->key, (uint64_t)block);                                          \
        for (int64_t i = begin; i < end; i++)                                                \
            out[i] = (integer)((uint64_t)job->int_lo + scalar_below(&s, job->span));         \
    }                                                                                        \
    void draw_##name(integer *out, int64_t count, uint64_t key, int64_t lo, uint64_t span, int threads) \
    {                                                                                        \
        draw_job job = {.out = out, .count = count, .key = key, .int_lo = lo, .span = span}; \
        crew_run(threads, block_count(count), name##_block, &job);                           \
    }

DEFINE_INTEGERS(integers_i64, int64_t)
DEFINE_INTEGERS(integers_i32, int32_t)
DEFINE_INTEGERS(integers_i16, int16_t)
DEFINE_INTEGERS(integers_i8, int8_t)
