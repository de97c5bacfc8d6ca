/* Row pointers: first = lo, last = hi, never falling. The gaps are independent whole numbers of 1 .. OFFSET_GAP,
 * summed, and the sums scaled to the span: gaps of the result are uniform from 0 to twice their mean. */
#include <stdlib.h>

#include "crew.h"
#include "stream.h"

#define OFFSET_GAP (1 << 20)

typedef struct {
    void *out;
    int64_t count, lo, hi;
    uint64_t key;
    int64_t *sum; /* per block: the sum of its gaps, then that of all blocks before it */
    int64_t total;
} offsets_job;

/* The gap before each element of a block; nothing precedes element 0. */
static int64_t offset_gap(scalar_stream *s, int64_t element)
{
    int64_t gap = 1 + (int64_t)(scalar_next(s) >> 44);
    return element == 0 ? 0 : gap;
}

static void offsets_sum(void *context, int64_t block)
{
    offsets_job *job = context;
    int64_t begin = block * BLOCK;
    int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;
    scalar_stream s;
    scalar_seed(&s, job->key, (uint64_t)block);
    for (int64_t i = begin; i < end; i++)
        job->sum[block] += offset_gap(&s, i);
}

static void offsets_prefix(offsets_job *job)
{
    for (int64_t block = 0; block < block_count(job->count); block++) {
        int64_t here = job->sum[block];
        job->sum[block] = job->total;
        job->total += here;
    }
}

/* Each rounding below keeps the order of its operands, so the offsets never fall. */
#define DEFINE_OFFSETS(name, integer)                                                          \
    static void name##_write(void *context, int64_t block)                                     \
    {                                                                                          \
        offsets_job *job = context;                                                            \
        integer *out = job->out;                                                               \
        int64_t begin = block * BLOCK;                                                         \
        int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;                 \
        int64_t at = job->sum[block];                                                          \
        double span = (double)(job->hi - job->lo), total = (double)job->total;                 \
        scalar_stream s;                                                                       \
        scalar_seed(&s, job->key, (uint64_t)block);                                            \
        for (int64_t i = begin; i < end; i++) {                                                \
            at += offset_gap(&s, i);                                                           \
            int64_t value = job->lo + (i == 0 ? 0 : (int64_t)((double)at / total * span));     \
            out[i] = (integer)(i > 0 && i == job->count - 1 ? job->hi : value);                \
        }                                                                                      \
    }                                                                                          \
    int draw_##name(integer *out, int64_t count, uint64_t key, int64_t lo, int64_t hi, int threads) \
    {                                                                                          \
        offsets_job job = {.out = out, .count = count, .key = key, .lo = lo, .hi = hi};        \
        job.sum = calloc((size_t)block_count(count) + 1, sizeof *job.sum);                     \
        if (job.sum == NULL)                                                                   \
            return 1;                                                                          \
        crew_run(threads, block_count(count), offsets_sum, &job);                              \
        offsets_prefix(&job);                                                                  \
        crew_run(threads, block_count(count), name##_write, &job);                             \
        free(job.sum);                                                                         \
        return 0;                                                                              \
    }

DEFINE_OFFSETS(offsets_i64, int64_t)
DEFINE_OFFSETS(offsets_i32, int32_t)
