/* Rounds single precision to a narrower binary format, to nearest, ties to even, as IEEE 754 says. A format is its
 * number of stored mantissa bits and its exponent bias; what is rounded must lie within its finite numbers. */
#include <math.h>

#include "crew.h"

typedef struct {
    const float *from;
    void *to;
    int64_t count;
    int mantissa, bias;
} narrow_job;

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A number below the format's normal ones is rounded by adding a constant whose last bit is the format's smallest
 * step; any other by adding half a step, one less on ties to an even digit, to its pattern. */
#define DEFINE_NARROW(name, word)                                                                     \
    static void name##_block(void *context, int64_t block)                                            \
    {                                                                                                 \
        const narrow_job *job = context;                                                              \
        int64_t begin = block * BLOCK;                                                                \
        int64_t end = begin + BLOCK < job->count ? begin + BLOCK : job->count;                        \
        const float *from = job->from;                                                                \
        word *restrict to = job->to;                                                                  \
        uint32_t shift = 23u - (uint32_t)job->mantissa, half = (1u << (shift - 1)) - 1;               \
        uint32_t rebias = (uint32_t)(127 - job->bias) << job->mantissa;                               \
        uint32_t sign_place = 8 * sizeof(word) - 1;                                                   \
        float smallest = bits_float((uint32_t)(128 - job->bias) << 23);                               \
        float step = bits_float((uint32_t)(128 - job->bias + (int)shift) << 23);                      \
        for (int64_t i = begin; i < end; i++) {                                                       \
            uint32_t bits = float_bits(from[i]), size = bits & 0x7fffffffu;                           \
            uint32_t normal = ((size + half + ((size >> shift) & 1)) >> shift) - rebias;              \
            uint32_t below = float_bits(bits_float(size) + step) - float_bits(step);                  \
            uint32_t rounded = bits_float(size) < smallest ? below : normal;                          \
            to[i] = (word)(rounded | (bits >> 31) << sign_place);                                     \
        }                                                                                             \
    }

DEFINE_NARROW(narrow_16, uint16_t)
DEFINE_NARROW(narrow_8, uint8_t)

void narrow_f32(const float *from, void *to, int64_t count, int bits, int mantissa, int bias, int threads)
{
    narrow_job job = {.from = from, .to = to, .count = count, .mantissa = mantissa, .bias = bias};
    crew_run(threads, block_count(count), bits == 16 ? narrow_16_block : narrow_8_block, &job);
}
