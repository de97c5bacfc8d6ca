/* Compares two arrays element by element in one pass: |a - e| <= atol + rtol |e|, equal infinities, NaN with NaN.
 * Two finite numbers whose difference overflows do not agree. The norm is taken over the finite expected values.
 * Narrow formats are read through a table of what each of their bit patterns means; complex numbers are compared
 * by modulus, their infinities and NaNs component by component; integers by their bits. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "crew.h"

#define COMPARE_TASK 65536
#define COMPARE_BATCH 2048

typedef struct {
    int64_t bad;       /* elements outside the band */
    int64_t first_bad; /* the smallest index of one, or -1 */
    double max_abs;    /* largest |a - e|; infinite where one of the two is not finite and they do not match */
    double max_rel;    /* largest |a - e| / |e| over e != 0 */
    double norm;       /* largest finite |e| */
} compare_result;

typedef struct {
    const void *actual, *expected;
    int64_t count;
    double rtol, atol;
    const float *meaning; /* of every bit pattern of a narrow format */
    compare_result total;
    pthread_mutex_t lock;
} compare_job;

static void compare_clear(compare_result *r)
{
    *r = (compare_result){.first_bad = -1};
}

static void compare_merge(compare_job *job, const compare_result *part)
{
    compare_result *t = &job->total;
    pthread_mutex_lock(&job->lock);
    t->bad += part->bad;
    if (part->first_bad >= 0 && (t->first_bad < 0 || part->first_bad < t->first_bad))
        t->first_bad = part->first_bad;
    t->max_abs = part->max_abs > t->max_abs ? part->max_abs : t->max_abs;
    t->max_rel = part->max_rel > t->max_rel ? part->max_rel : t->max_rel;
    t->norm = part->norm > t->norm ? part->norm : t->norm;
    pthread_mutex_unlock(&job->lock);
}

/* The distance of two values: 0 when they are the same, infinite when it is no finite number. */
static inline double distance(double a, double e)
{
    double d = fabs(a - e);
    int same = (a == e) | ((a != a) & (e != e));
    d = d <= DBL_MAX ? d : INFINITY;
    return same ? 0.0 : d;
}

static inline int outside(double d, double size, double rtol, double atol)
{
    int close = (d <= DBL_MAX) & (d <= atol + rtol * size);
    return !((d == 0.0) | close);
}

/* How one element is measured: the distance of the two, and the size of the expected one. */
#define DEFINE_MEASURE(name, element, VALUE)                                                              \
    static inline void name(const compare_job *job, const element *a, const element *e, int64_t i, double *d, \
                            double *size)                                                                 \
    {                                                                                                     \
        double produced = VALUE(a, i), expected = VALUE(e, i);                                            \
        (void)job;                                                                                        \
        *d = distance(produced, expected);                                                                \
        *size = fabs(expected);                                                                           \
    }

#define PLAIN(x, i) ((double)(x)[i])
#define LOOKED_UP(x, i) ((double)job->meaning[(x)[i]])

DEFINE_MEASURE(measure_f64, double, PLAIN)
DEFINE_MEASURE(measure_f32, float, PLAIN)
DEFINE_MEASURE(measure_t16, uint16_t, LOOKED_UP)
DEFINE_MEASURE(measure_t8, uint8_t, LOOKED_UP)

/* sqrt(x^2 + y^2) for x, y >= 0 without overflow on the way; infinite when one of them is. */
static inline double modulus(double x, double y)
{
    double larger = x > y ? x : y, smaller = x > y ? y : x;
    double ratio = smaller / (larger > 0.0 ? larger : 1.0);
    return larger <= DBL_MAX ? larger * sqrt(1.0 + ratio * ratio) : INFINITY;
}

static inline double finite_part(double x)
{
    double size = fabs(x);
    return size <= DBL_MAX ? size : 0.0;
}

#define DEFINE_COMPLEX_MEASURE(name, real)                                                                \
    static inline void name(const compare_job *job, const real(*a)[2], const real(*e)[2], int64_t i, double *d, \
                            double *size)                                                                 \
    {                                                                                                     \
        (void)job;                                                                                        \
        *d = modulus(distance((double)a[i][0], (double)e[i][0]), distance((double)a[i][1], (double)e[i][1])); \
        *size = modulus(finite_part((double)e[i][0]), finite_part((double)e[i][1]));                      \
    }

typedef double double_pair[2];
typedef float float_pair[2];
DEFINE_COMPLEX_MEASURE(measure_c128, double)
DEFINE_COMPLEX_MEASURE(measure_c64, float)

#define DEFINE_COMPARE(name, element, measure)                                                            \
    /* Nearly every honest output is the reference to the bit: then only the norm is left to find. */     \
    static void name##_equal(const compare_job *job, const element *e, int64_t n, compare_result *r)      \
    {                                                                                                     \
        double norm = r->norm;                                                                            \
        _Pragma("omp simd reduction(max : norm)")                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                 \
            double d, size;                                                                               \
            measure(job, e, e, i, &d, &size);                                                             \
            double finite = size <= DBL_MAX ? size : 0.0;                                                 \
            norm = finite > norm ? finite : norm;                                                         \
        }                                                                                                 \
        r->norm = norm;                                                                                   \
    }                                                                                                     \
    static void name##_batch(const compare_job *job, const element *a, const element *e, int64_t n,       \
                             compare_result *r)                                                           \
    {                                                                                                     \
        double max_abs = r->max_abs, max_rel = r->max_rel, norm = r->norm;                                \
        double rtol = job->rtol, atol = job->atol;                                                        \
        int64_t bad = 0;                                                                                  \
        _Pragma("omp simd reduction(max : max_abs, max_rel, norm) reduction(+ : bad)")                    \
        for (int64_t i = 0; i < n; i++) {                                                                 \
            double d, size;                                                                               \
            measure(job, a, e, i, &d, &size);                                                             \
            double finite = size <= DBL_MAX ? size : 0.0;                                                 \
            double relative = d / (size > 0.0 ? size : INFINITY);                                         \
            bad += outside(d, size, rtol, atol);                                                          \
            max_abs = d > max_abs ? d : max_abs;                                                          \
            max_rel = relative > max_rel ? relative : max_rel;                                            \
            norm = finite > norm ? finite : norm;                                                         \
        }                                                                                                 \
        r->bad += bad;                                                                                    \
        r->max_abs = max_abs;                                                                             \
        r->max_rel = max_rel;                                                                             \
        r->norm = norm;                                                                                   \
    }                                                                                                     \
    static void name##_task(void *context, int64_t task)                                                  \
    {                                                                                                     \
        compare_job *job = context;                                                                       \
        int64_t begin = task * COMPARE_TASK;                                                              \
        int64_t end = begin + COMPARE_TASK < job->count ? begin + COMPARE_TASK : job->count;              \
        compare_result part;                                                                              \
        compare_clear(&part);                                                                             \
        for (int64_t at = begin; at < end; at += COMPARE_BATCH) {                                         \
            const element *a = (const element *)job->actual + at, *e = (const element *)job->expected + at; \
            int64_t n = end - at < COMPARE_BATCH ? end - at : COMPARE_BATCH;                              \
            int64_t before = part.bad;                                                                    \
            if (memcmp(a, e, (size_t)n * sizeof *a) == 0) {                                               \
                name##_equal(job, e, n, &part);                                                           \
                continue;                                                                                 \
            }                                                                                             \
            name##_batch(job, a, e, n, &part);                                                            \
            for (int64_t i = 0; part.bad > before && part.first_bad < 0 && i < n; i++) {                  \
                double d, size;                                                                           \
                measure(job, a, e, i, &d, &size);                                                         \
                if (outside(d, size, job->rtol, job->atol))                                               \
                    part.first_bad = at + i;                                                              \
            }                                                                                             \
        }                                                                                                 \
        compare_merge(job, &part);                                                                        \
    }

DEFINE_COMPARE(compare_f64, double, measure_f64)
DEFINE_COMPARE(compare_f32, float, measure_f32)
DEFINE_COMPARE(compare_t16, uint16_t, measure_t16)
DEFINE_COMPARE(compare_t8, uint8_t, measure_t8)
DEFINE_COMPARE(compare_c128, double_pair, measure_c128)
DEFINE_COMPARE(compare_c64, float_pair, measure_c64)

/* Integers agree when their bits do; only `bad` and `first_bad` are found. */
#define DEFINE_COMPARE_BITS(name, word)                                                                   \
    static void name##_task(void *context, int64_t task)                                                  \
    {                                                                                                     \
        compare_job *job = context;                                                                       \
        int64_t begin = task * COMPARE_TASK;                                                              \
        int64_t n = (begin + COMPARE_TASK < job->count ? begin + COMPARE_TASK : job->count) - begin;      \
        const word *a = (const word *)job->actual + begin, *e = (const word *)job->expected + begin;      \
        if (memcmp(a, e, (size_t)n * sizeof *a) == 0)                                                     \
            return;                                                                                       \
        compare_result part;                                                                              \
        compare_clear(&part);                                                                             \
        for (int64_t i = n - 1; i >= 0; i--)                                                              \
            if (a[i] != e[i]) {                                                                           \
                part.bad++;                                                                               \
                part.first_bad = begin + i;                                                               \
            }                                                                                             \
        compare_merge(job, &part);                                                                        \
    }

DEFINE_COMPARE_BITS(compare_b64, uint64_t)
DEFINE_COMPARE_BITS(compare_b32, uint32_t)
DEFINE_COMPARE_BITS(compare_b16, uint16_t)
DEFINE_COMPARE_BITS(compare_b8, uint8_t)

enum compare_kind {
    COMPARE_F64, COMPARE_F32, COMPARE_T16, COMPARE_T8, COMPARE_C128, COMPARE_C64,
    COMPARE_B64, COMPARE_B32, COMPARE_B16, COMPARE_B8, COMPARE_KINDS
};

static const crew_task compare_tasks[COMPARE_KINDS] = {
    [COMPARE_F64] = compare_f64_task,   [COMPARE_F32] = compare_f32_task, [COMPARE_T16] = compare_t16_task,
    [COMPARE_T8] = compare_t8_task,     [COMPARE_C128] = compare_c128_task, [COMPARE_C64] = compare_c64_task,
    [COMPARE_B64] = compare_b64_task,   [COMPARE_B32] = compare_b32_task, [COMPARE_B16] = compare_b16_task,
    [COMPARE_B8] = compare_b8_task,
};

/* `meaning` is read by the kinds T16 and T8 alone. */
void compare_arrays(int kind, const void *actual, const void *expected, int64_t count, double rtol, double atol,
                    const float *meaning, int threads, compare_result *result)
{
    compare_job job = {.actual = actual, .expected = expected, .count = count, .rtol = rtol, .atol = atol,
                       .meaning = meaning};
    compare_clear(&job.total);
    pthread_mutex_init(&job.lock, NULL);
    crew_run(threads, (count + COMPARE_TASK - 1) / COMPARE_TASK, compare_tasks[kind], &job);
    pthread_mutex_destroy(&job.lock);
    *result = job.total;
}
