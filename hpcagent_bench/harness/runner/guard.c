/* What the Python runner takes from C: the system-call filter and the floating-point modes. */
#define _GNU_SOURCE
#include "fp_modes.h"
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
