"""System calls by which a process changes a clock, watches another process, or takes more than it was given.

Each source spoils its answer when the call is granted, so a correct grade says that it was not.
"""

from __future__ import annotations

import pytest
from attack_rig import Rig, unspoilt, version

ATTEMPTS = {
    "time-stamp counter trap": "prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0",
    "own filter": "syscall(SYS_seccomp, 1, 0, &program) == 0",
    "own filter by prctl": "prctl(PR_SET_SECCOMP, 2, &program, 0, 0) == 0",
    "dispatch of system calls": "prctl(59, 1, 0, 0, 0) == 0 || errno != EPERM",
    "setting the clock": "clock_settime(CLOCK_REALTIME, &when) == 0",
    "slewing the clock": "adjtimex(&slew) >= 0",
    "time namespace": "unshare(CLONE_NEWUSER | 0x80) == 0",
    "being traced": "ptrace(PTRACE_TRACEME, 0, 0, 0) == 0",
    "tracing the parent": "ptrace(PTRACE_SEIZE, getppid() ? getppid() : 2, 0, 0) == 0",
    "reading another process": "process_vm_readv(1, &here, 1, &there, 1, 0) > 0",
    "writing another process": "process_vm_writev(1, &here, 1, &there, 1, 0) > 0",
    "its own memory as a file": 'open("/proc/self/mem", O_RDWR) >= 0',
    "watching page faults": "syscall(SYS_userfaultfd, 0) >= 0",
    "counters": "syscall(SYS_perf_event_open, event, 0, -1, -1, 0) >= 0",
    "rings": "syscall(425, 8, event) >= 0",
    "a new program": 'setenv("LD_PRELOAD", "/grading/kernel.so", 1), execv("/grading/runner", args) == 0',
    "a new program by descriptor": 'syscall(SYS_execveat, -1, "/bin/true", args, environ, 0) == 0',
    "higher priority": "setpriority(PRIO_PROCESS, 0, -5) == 0",
    "real-time scheduling": "sched_setscheduler(0, SCHED_FIFO, &urgent) == 0",
    "scheduling deadlines": "syscall(SYS_sched_setattr, 0, deadline, 0) == 0",
    "higher limits": "setrlimit(RLIMIT_DATA, &unlimited) == 0",
    "signals to others": "kill(-1, 0) == 0 || kill(2, 0) == 0",
    "memory without a limit": 'syscall(SYS_memfd_create, "x", 0) >= 0',
    "shared memory without a limit": "mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED",
    "network": "socket(AF_INET, SOCK_STREAM, 0) >= 0",
    "a descriptor of another": "syscall(434, 1, 0) >= 0",
    "timers that wake a stopped process": "timer_create(CLOCK_MONOTONIC, &wake, &timer) == 0",
}
BEFORE = """#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/uio.h>
static char buffer[256];
"""
NAMES = """struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
struct sock_fprog program = {1, allow};
struct timespec when = {1, 0};
struct timex slew = {.modes = ADJ_OFFSET, .offset = 1};
struct iovec here = {buffer, 8}, there = {buffer, 8};
static uint32_t event[32] = {1, 128};
static uint64_t deadline[6] = {48 | 6ul << 32, 0, 0, 1000000, 2000000, 2000000};
char *args[] = {"/grading/runner", 0};
struct sched_param urgent = {.sched_priority = 1};
struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
struct sigevent wake = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
timer_t timer;
(void)program; (void)when; (void)slew; (void)here; (void)there; (void)event; (void)deadline; (void)args;
(void)urgent; (void)unlimited; (void)wake; (void)timer;
"""


@pytest.mark.parametrize("name", ATTEMPTS)
def test_system_call_is_refused(judge: Rig, name: str) -> None:
    unspoilt(judge.preview(version(f"HONEST; {NAMES} if ({ATTEMPTS[name]}) area[0] = NAN;", BEFORE)))


def test_twin_that_asks_for_what_everybody_may_is_accepted(judge: Rig) -> None:
    body = f"""HONEST; {NAMES} struct rlimit now; cpu_set_t cores; struct timespec t;
    if (getrlimit(RLIMIT_DATA, &now) || sched_getaffinity(0, sizeof cores, &cores) || !getpid()) abort();
    if (clock_gettime(CLOCK_MONOTONIC, &t) || getpriority(PRIO_PROCESS, 0)) abort();
    void *own = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED || munmap(own, 4096)) abort();"""
    judge.accepts(version(body, BEFORE))
