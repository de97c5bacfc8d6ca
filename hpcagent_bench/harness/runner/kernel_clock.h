/* CLOCK_MONOTONIC asked of the kernel itself, without the C library or the vDSO in between: code that is loaded into
 * this process can replace those, and the filter keeps system calls from being caught on their way. */
#ifndef HB_KERNEL_CLOCK_H
#define HB_KERNEL_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static inline uint64_t hb_kernel_ns(void)
{
    struct timespec t = {0, 0};
#if defined(__x86_64__)
    long result = __NR_clock_gettime;
    register long clock __asm__("rdi") = CLOCK_MONOTONIC;
    register struct timespec *to __asm__("rsi") = &t;
    __asm__ volatile("syscall" : "+a"(result) : "r"(clock), "r"(to) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = __NR_clock_gettime;
    register long clock __asm__("x0") = CLOCK_MONOTONIC;
    register struct timespec *to __asm__("x1") = &t;
    __asm__ volatile("svc #0" : "+r"(clock) : "r"(number), "r"(to) : "memory");
#endif
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
