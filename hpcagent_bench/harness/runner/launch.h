/* Binds a process to cores and limits it, then becomes another program. */
#ifndef HB_LAUNCH_H
#define HB_LAUNCH_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lockdown.h"

/* Never above the hard limit that this process was given; 0 leaves the limit as it is. */
static void hb_limit(int resource, rlim_t soft, int bind_hard)
{
    struct rlimit old;
    if (getrlimit(resource, &old) != 0)
        return;
    if (soft > old.rlim_max)
        soft = old.rlim_max;
    struct rlimit fresh = {.rlim_cur = soft, .rlim_max = bind_hard ? soft : old.rlim_max};
    setrlimit(resource, &fresh);
}

/* `kind` is "", "-compiler" or "-sanitized"; argv is CORES STACK DATA FILE -- PROGRAM ARGS... with CORES as "0,2,3" and
 * the limits in bytes, 0 for none. Returns only when it fails. */
static int hb_launch(const char *kind, char **argv)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (char *next = argv[0]; *next; next += *next == ',')
        CPU_SET((int)strtol(next, &next, 10), &cores);
    if (CPU_COUNT(&cores) && sched_setaffinity(0, sizeof cores, &cores) != 0) {
        fprintf(stderr, "cannot bind to cores %s: %s\n", argv[0], strerror(errno));
        return 4;
    }
    rlim_t stack = strtoull(argv[1], NULL, 10), data = strtoull(argv[2], NULL, 10), file = strtoull(argv[3], NULL, 10);
    hb_limit(RLIMIT_CORE, 0, 1);
    if (stack)
        hb_limit(RLIMIT_STACK, stack, 0);
    if (data)
        hb_limit(RLIMIT_DATA, data, 1);
    if (file)
        hb_limit(RLIMIT_FSIZE, file, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!strcmp(kind, "-sanitized")) /* old sanitizers and kernels disagree over where random addresses may lie */
        personality(ADDR_NO_RANDOMIZE);
    if (!strcmp(kind, "-compiler") && hb_lockdown_compiler() != 0) {
        fprintf(stderr, "this kernel has no system-call filter: %s\n", strerror(errno));
        return 4;
    }
    execv(argv[5], argv + 5);
    fprintf(stderr, "cannot start %s: %s\n", argv[5], strerror(errno));
    return 4;
}

#endif
