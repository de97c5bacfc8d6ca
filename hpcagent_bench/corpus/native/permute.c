/* A uniformly random permutation of 0 .. count-1, the same for every thread count.
 * Method of Rao (1961) and Sandelius (1962): every number goes to a random bucket, then each bucket, small enough
 * for a cache, is shuffled (Fisher and Yates). Buckets are drawn by block from a stream of the block's own. */
#include <stdlib.h>

#include "crew.h"
#include "stream.h"

#define PERMUTE_BLOCK 262144
#define PERMUTE_MAX_BUCKETS 4096
#define PERMUTE_BUCKET_SIZE 8192

typedef struct {
    void *out;
    int64_t count, blocks, buckets;
    uint64_t key;
    int shift;       /* 64 - log2(buckets) */
    int64_t *place;  /* blocks x buckets: counts, then where the block's next number of that bucket goes */
    int64_t *begin;  /* buckets + 1 */
} permute_job;

static int bucket_of(const permute_job *job, uint64_t word)
{
    return job->shift == 64 ? 0 : (int)(word >> job->shift);
}

static void permute_count(void *context, int64_t block)
{
    permute_job *job = context;
    int64_t begin = block * PERMUTE_BLOCK;
    int64_t end = begin + PERMUTE_BLOCK < job->count ? begin + PERMUTE_BLOCK : job->count;
    int64_t *place = job->place + block * job->buckets;
    scalar_stream s;
    scalar_seed(&s, job->key, (uint64_t)block);
    for (int64_t i = begin; i < end; i++)
        place[bucket_of(job, scalar_next(&s))]++;
}

static void permute_offsets(permute_job *job)
{
    int64_t total = 0;
    for (int64_t bucket = 0; bucket < job->buckets; bucket++) {
        job->begin[bucket] = total;
        for (int64_t block = 0; block < job->blocks; block++) {
            int64_t *cell = &job->place[block * job->buckets + bucket];
            int64_t here = *cell;
            *cell = total;
            total += here;
        }
    }
    job->begin[job->buckets] = total;
}

/* The number of buckets follows from the count alone: it is part of what a seed means. */
static void permute_plan(permute_job *job)
{
    job->buckets = 1;
    job->shift = 64;
    while (job->buckets < PERMUTE_MAX_BUCKETS && job->count > job->buckets * PERMUTE_BUCKET_SIZE) {
        job->buckets *= 2;
        job->shift--;
    }
    job->blocks = (job->count + PERMUTE_BLOCK - 1) / PERMUTE_BLOCK;
}

#define DEFINE_PERMUTATION(name, integer)                                                \
    static void name##_scatter(void *context, int64_t block)                             \
    {                                                                                    \
        permute_job *job = context;                                                      \
        integer *out = job->out;                                                         \
        int64_t begin = block * PERMUTE_BLOCK;                                           \
        int64_t end = begin + PERMUTE_BLOCK < job->count ? begin + PERMUTE_BLOCK : job->count; \
        int64_t *place = job->place + block * job->buckets;                              \
        scalar_stream s;                                                                 \
        scalar_seed(&s, job->key, (uint64_t)block);                                      \
        for (int64_t i = begin; i < end; i++)                                            \
            out[place[bucket_of(job, scalar_next(&s))]++] = (integer)i;                  \
    }                                                                                    \
    static void name##_shuffle(void *context, int64_t bucket)                            \
    {                                                                                    \
        permute_job *job = context;                                                      \
        integer *out = (integer *)job->out + job->begin[bucket];                         \
        int64_t n = job->begin[bucket + 1] - job->begin[bucket];                         \
        scalar_stream s;                                                                 \
        scalar_seed(&s, ~job->key, (uint64_t)bucket);                                    \
        for (int64_t i = n - 1; i > 0; i--) {                                            \
            int64_t j = (int64_t)scalar_below(&s, (uint64_t)i + 1);                      \
            integer held = out[i];                                                       \
            out[i] = out[j];                                                             \
            out[j] = held;                                                               \
        }                                                                                \
    }                                                                                    \
    int draw_##name(integer *out, int64_t count, uint64_t key, int threads)              \
    {                                                                                    \
        permute_job job = {.out = out, .count = count, .key = key};                      \
        permute_plan(&job);                                                              \
        job.place = calloc((size_t)(job.blocks * job.buckets + 1), sizeof *job.place);   \
        job.begin = calloc((size_t)job.buckets + 1, sizeof *job.begin);                  \
        int failed = job.place == NULL || job.begin == NULL;                             \
        if (!failed) {                                                                   \
            crew_run(threads, job.blocks, permute_count, &job);                          \
            permute_offsets(&job);                                                       \
            crew_run(threads, job.blocks, name##_scatter, &job);                         \
            crew_run(threads, job.buckets, name##_shuffle, &job);                        \
        }                                                                                \
        free(job.place);                                                                 \
        free(job.begin);                                                                 \
        return failed;                                                                   \
    }

DEFINE_PERMUTATION(permutation_i64, int64_t)
DEFINE_PERMUTATION(permutation_i32, int32_t)
