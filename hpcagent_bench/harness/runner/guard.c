/* What the Python runner takes from C: the system-call filter, the floating-point modes and the kernel's clock. */
#define _GNU_SOURCE
#include "fp_modes.h"
#include "kernel_clock.h"
#include "lockdown.h"

/* 0, or an errno value when the kernel has no system-call filter. */
int hb_guard_lock(void)
{
    return hb_lockdown() == 0 ? 0 : errno;
}

/* Restore the calling thread's modes; what had been changed, as bits of messages.FP_MODES. */
unsigned hb_guard_modes(void)
{
    return hb_fp_restore();
}

uint64_t hb_guard_ns(void)
{
    return hb_kernel_ns();
}
