/* The floating-point modes of the calling thread: what a kernel starts with, and what code left changed.
 *
 * A library built with fast maths switches its process to flush denormals when it is loaded, others set a rounding
 * direction and forget it. Threads inherit the modes of whoever makes them, so they are put right before every call.
 */
#ifndef HB_FP_MODES_H
#define HB_FP_MODES_H

#include <stdint.h>

enum { HB_FLUSH = 1, HB_DENORMALS_ZERO = 2, HB_ROUNDING = 4, HB_TRAPS = 8, HB_PRECISION = 16 };
enum { HB_CLOCK = 32 }; /* beside the modes in a frame: the process' own clock fell behind the kernel's */

#if defined(__x86_64__)
/* Intel SDM vol. 1: MXCSR (10.2.3) and the x87 control word (8.1.5) as a process starts with them, without the
 * status flags in the low bits of the former. */
#define HB_MXCSR 0x1f80u
#define HB_X87 0x037fu

static inline uint32_t hb_fp_restore(void)
{
    uint32_t mxcsr, changed = 0;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    uint32_t sse = (mxcsr & 0xffc0u) ^ HB_MXCSR, old = (uint32_t)x87 ^ HB_X87;
    if (!(sse | (old & 0x0f3fu)))
        return 0;
    changed |= sse & 0x8000u ? HB_FLUSH : 0;
    changed |= sse & 0x0040u ? HB_DENORMALS_ZERO : 0;
    changed |= (sse & 0x6000u) || (old & 0x0c00u) ? HB_ROUNDING : 0;
    changed |= (sse & 0x1f80u) || (old & 0x003fu) ? HB_TRAPS : 0;
    changed |= old & 0x0300u ? HB_PRECISION : 0;
    mxcsr = HB_MXCSR;
    x87 = HB_X87;
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(x87));
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    return changed;
}
#elif defined(__aarch64__)
/* Arm ARM, FPCR: FZ 24, FZ16 19, rounding 22-23, trap enables 8-12 and 15; a process starts with 0. */
static inline uint32_t hb_fp_restore(void)
{
    uint64_t fpcr, clear = 0;
    uint32_t changed = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    changed |= fpcr & (1u << 24 | 1u << 19) ? HB_FLUSH : 0;
    changed |= fpcr & (3u << 22) ? HB_ROUNDING : 0;
    changed |= fpcr & 0x9f00u ? HB_TRAPS : 0;
    if (fpcr)
        __asm__ volatile("msr fpcr, %0" : : "r"(clear));
    return changed;
}
#endif

#endif
