/* Random words: eight xoshiro256+ lanes advanced together, seeded by splitmix64 from (key, block).
 * The lane count is part of the definition, so the words do not depend on the vector width of the machine.
 * Generators: Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021. */
#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the order of the two halves of a word is defined on little-endian machines only"
#endif

#define STREAM_BATCH 1024 /* words a refill makes; a multiple of 8 that stays in the first-level cache */

typedef uint64_t lanes __attribute__((vector_size(32)));

typedef struct {
    lanes s0[2], s1[2], s2[2], s3[2];
} stream;

static uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void stream_seed(stream *s, uint64_t key, uint64_t block)
{
    uint64_t word[32];
    uint64_t state = key ^ mix64(block + 0x9e3779b97f4a7c15u);
    for (int i = 0; i < 32; i++) {
        state += 0x9e3779b97f4a7c15u;
        word[i] = mix64(state);
    }
    memcpy(s, word, sizeof word);
}

static inline lanes stream_step(lanes *s0, lanes *s1, lanes *s2, lanes *s3)
{
    lanes result = *s0 + *s3;
    lanes t = *s1 << 17;
    *s2 ^= *s0;
    *s3 ^= *s1;
    *s1 ^= *s2;
    *s0 ^= *s3;
    *s2 ^= t;
    *s3 = (*s3 << 45) | (*s3 >> 19);
    return result;
}

/* Writes the next STREAM_BATCH words. */
static void stream_refill(stream *s, uint64_t *out)
{
    stream local = *s;
    for (int i = 0; i < STREAM_BATCH; i += 8) {
        lanes low = stream_step(&local.s0[0], &local.s1[0], &local.s2[0], &local.s3[0]);
        lanes high = stream_step(&local.s0[1], &local.s1[1], &local.s2[1], &local.s3[1]);
        memcpy(out + i, &low, sizeof low);
        memcpy(out + i + 4, &high, sizeof high);
    }
    *s = local;
}

/* One word at a time, for the few places that need it. */
typedef struct {
    stream source;
    int used;
    uint64_t word[STREAM_BATCH];
} scalar_stream;

static void scalar_seed(scalar_stream *s, uint64_t key, uint64_t block)
{
    stream_seed(&s->source, key, block);
    s->used = STREAM_BATCH;
}

static inline uint64_t scalar_next(scalar_stream *s)
{
    if (s->used == STREAM_BATCH) {
        stream_refill(&s->source, s->word);
        s->used = 0;
    }
    return s->word[s->used++];
}

/* A uniform integer of [0, bound): multiply and reject (Lemire 2019), so no value is favoured. */
static inline uint64_t scalar_below(scalar_stream *s, uint64_t bound)
{
    for (;;) {
        unsigned __int128 product = (unsigned __int128)scalar_next(s) * bound;
        if ((uint64_t)product >= bound || (uint64_t)product >= -bound % bound)
            return (uint64_t)(product >> 64);
    }
}

#endif
