/* Compares two arrays element by element in one pass: |a - e| <= atol + rtol |e|, equal infinities, NaN with NaN.
 * Two finite numbers whose difference overflows do not agree. The norm is taken over the finite expected values. */
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

#define DEFINE_COMPARE(name, real)                                                                       \
    /* Nearly every honest output is the reference to the bit: then only the norm is left to find. */    \
    static void name##_equal(const real *e, int64_t n, compare_result *r)                                \
    {                                                                                                    \
        double norm = r->norm;                                                                           \
        _Pragma("omp simd reduction(max : norm)")                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                \
            double size = fabs((double)e[i]);                                                            \
            double finite = size <= DBL_MAX ? size : 0.0;                                                \
            norm = finite > norm ? finite : norm;                                                        \
        }                                                                                                \
        r->norm = norm;                                                                                  \
    }                                                                                                    \
    static void name##_batch(const real *a, const real *e, int64_t n, double rtol, double atol, compare_result *r) \
    {                                                                                                    \
        double max_abs = r->max_abs, max_rel = r->max_rel, norm = r->norm;                               \
        int64_t bad = 0;                                                                                 \
        _Pragma("omp simd reduction(max : max_abs, max_rel, norm) reduction(+ : bad)")                   \
        for (int64_t i = 0; i < n; i++) {                                                                \
            double size = fabs((double)e[i]);                                                            \
            double d = distance((double)a[i], (double)e[i]);                                             \
            double finite = size <= DBL_MAX ? size : 0.0;                                                \
            double relative = d / (size > 0.0 ? size : INFINITY);                                        \
            bad += outside(d, size, rtol, atol);                                                         \
            max_abs = d > max_abs ? d : max_abs;                                                         \
            max_rel = relative > max_rel ? relative : max_rel;                                           \
            norm = finite > norm ? finite : norm;                                                        \
        }                                                                                                \
        r->bad += bad;                                                                                   \
        r->max_abs = max_abs;                                                                            \
        r->max_rel = max_rel;                                                                            \
        r->norm = norm;                                                                                  \
    }                                                                                                    \
    static void name##_task(void *context, int64_t task)                                                 \
    {                                                                                                    \
        compare_job *job = context;                                                                      \
        int64_t begin = task * COMPARE_TASK;                                                             \
        int64_t end = begin + COMPARE_TASK < job->count ? begin + COMPARE_TASK : job->count;             \
        compare_result part;                                                                             \
        compare_clear(&part);                                                                            \
        for (int64_t at = begin; at < end; at += COMPARE_BATCH) {                                        \
            const real *a = (const real *)job->actual + at, *e = (const real *)job->expected + at;       \
            int64_t n = end - at < COMPARE_BATCH ? end - at : COMPARE_BATCH;                             \
            int64_t before = part.bad;                                                                   \
            if (memcmp(a, e, (size_t)n * sizeof *a) == 0) {                                              \
                name##_equal(e, n, &part);                                                               \
                continue;                                                                                \
            }                                                                                            \
            name##_batch(a, e, n, job->rtol, job->atol, &part);                                          \
            for (int64_t i = 0; part.bad > before && part.first_bad < 0 && i < n; i++)                   \
                if (outside(distance(a[i], e[i]), fabs((double)e[i]), job->rtol, job->atol))             \
                    part.first_bad = at + i;                                                             \
        }                                                                                                \
        compare_merge(job, &part);                                                                       \
    }

DEFINE_COMPARE(compare_real64, double)
DEFINE_COMPARE(compare_real32, float)

static void compare_start(compare_job *job, int threads, crew_task run)
{
    compare_clear(&job->total);
    pthread_mutex_init(&job->lock, NULL);
    crew_run(threads, (job->count + COMPARE_TASK - 1) / COMPARE_TASK, run, job);
    pthread_mutex_destroy(&job->lock);
}

void compare_f64(const double *actual, const double *expected, int64_t count, double rtol, double atol, int threads,
                 compare_result *result)
{
    compare_job job = {.actual = actual, .expected = expected, .count = count, .rtol = rtol, .atol = atol};
    compare_start(&job, threads, compare_real64_task);
    *result = job.total;
}

void compare_f32(const float *actual, const float *expected, int64_t count, double rtol, double atol, int threads,
                 compare_result *result)
{
    compare_job job = {.actual = actual, .expected = expected, .count = count, .rtol = rtol, .atol = atol};
    compare_start(&job, threads, compare_real32_task);
    *result = job.total;
}
