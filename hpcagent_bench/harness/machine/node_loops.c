/* Loops of known work by which a judge times its node, and the fastest that one core moves bytes. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <time.h>

static volatile uint64_t kept;

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A chain in which every step waits for the one before: its time is the core's clock rate. */
static void chain(int64_t steps) {
    uint64_t x = kept | 1;
    for (int64_t i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    kept = x;
}

static uint64_t read_words(const uint64_t *words, int64_t count) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

static void write_words(uint64_t *words, int64_t count, uint64_t value) {
    for (int64_t i = 0; i < count; i++)
        words[i] = value + (uint64_t)i;
}

/* Reads and rewrites the block once: its time is memory's where the block exceeds the caches. */
static void sweep(uint64_t *words, int64_t count) {
    uint64_t sum = read_words(words, count);
    write_words(words, count, sum);
    kept ^= sum;
}

/* `runs` runs alternating chain and sweep, so that both see the same moments; wall time of each in ns, and
   in `total` the wall and the CPU time of this thread over all of them. A count of 0 leaves the sweep out. */
void node_reference(int64_t steps, uint64_t *words, int64_t count, int64_t runs, int64_t *chain_ns,
                    int64_t *sweep_ns, int64_t *total) {
    int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int64_t run = 0; run < runs; run++) {
        int64_t start = clock_ns(CLOCK_MONOTONIC);
        chain(steps);
        int64_t middle = clock_ns(CLOCK_MONOTONIC);
        if (count > 0)
            sweep(words, count);
        chain_ns[run] = middle - start;
        sweep_ns[run] = clock_ns(CLOCK_MONOTONIC) - middle;
    }
    total[0] = clock_ns(CLOCK_MONOTONIC) - wall;
    total[1] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* The most bytes per nanosecond (GB/s) this thread reads or writes in a block of `count` words: the best of
   `bursts` short bursts of each kind, so that a preempted one does not count. */
double node_peak(uint64_t *words, int64_t count, int64_t bursts) {
    const double bytes = (double)count * sizeof(uint64_t);
    /* several passes a burst where one is too short for the clock */
    const int64_t passes = count < 131072 ? 131072 / count : 1;
    double best = 0;
    for (int64_t burst = 0; burst < bursts; burst++) {
        for (int kind = 0; kind < 3; kind++) {
            int64_t start = clock_ns(CLOCK_MONOTONIC);
            for (int64_t pass = 0; pass < passes; pass++) {
                if (kind == 0)
                    kept ^= read_words(words, count);
                else if (kind == 1)
                    write_words(words, count, kept + (uint64_t)pass);
                else
                    memset(words, (int)(kept + (uint64_t)pass) & 255, (size_t)count * sizeof(uint64_t));
                __asm__ volatile("" : : "r"(words) : "memory"); /* each pass is really made */
            }
            int64_t took = clock_ns(CLOCK_MONOTONIC) - start;
            double rate = took > 0 ? bytes * (double)passes / (double)took : 0;
            if (rate > best)
                best = rate;
        }
    }
    return best;
}
