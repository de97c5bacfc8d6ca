"""System-call filters: what a submission and a compiler may not do, and what honest ones need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hpcagent_bench.harness.runner import build
from tests.native.native_kernels import HONEST, child, draw, scalars

pytestmark = pytest.mark.usefixtures("nothing_left")

HEADERS = """#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#define REFUSED(call) (errno = 0, (long)(call) == -1 && errno == EPERM)
"""
DENIED = {
    "lower priority": "REFUSED(setpriority(PRIO_PROCESS, 0, 5))",
    "batch scheduling": "({ struct sched_param p = {0}; REFUSED(sched_setscheduler(0, SCHED_BATCH, &p)); })",
    "scheduling parameters": "({ struct sched_param p = {0}; REFUSED(sched_setparam(0, &p)); })",
    "scheduling attributes": "REFUSED(syscall(SYS_sched_setattr, 0, 0, 0))",
    "priority of input": "REFUSED(syscall(SYS_ioprio_set, 1, 0, 0))",
    "lower limits": "({ struct rlimit r = {9, 9}; REFUSED(setrlimit(RLIMIT_NOFILE, &r)); })",
    "limits by the old call": "({ struct rlimit r = {9, 9}; REFUSED(syscall(SYS_setrlimit, 7, &r)); })",
    "a timer of any signal": "({ timer_t t; REFUSED(timer_create(CLOCK_MONOTONIC, 0, &t)); })",
    "waking itself": "REFUSED(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGCONT))",
    "a descriptor of any signal": "REFUSED(fcntl(0, F_SETSIG, SIGCONT))",
    "notices of a folder": 'REFUSED(fcntl(open("/tmp", O_RDONLY), F_NOTIFY, 1))',
    "leases": "REFUSED(fcntl(0, F_SETLEASE, F_RDLCK))",
    "setting the clock": "({ struct timespec t = {1, 0}; REFUSED(clock_settime(CLOCK_REALTIME, &t)); })",
    "setting the day": "({ struct timeval t = {1, 0}; REFUSED(settimeofday(&t, 0)); })",
    "slewing the clock": "({ struct timex t = {0}; REFUSED(adjtimex(&t)); })",
    "slewing a clock": "({ struct timex t = {0}; REFUSED(clock_adjtime(CLOCK_REALTIME, &t)); })",
    "hiding from the judge": "REFUSED(prctl(PR_SET_DUMPABLE, 0))",
    "catching system calls": "REFUSED(prctl(59, 1, 0, 0, 0))",
    "being traced": "REFUSED(prctl(PR_SET_PTRACER, -1))",
    "its death's signal": "REFUSED(prctl(PR_SET_PDEATHSIG, 0))",
    "a process by clone": "REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))",
    "a namespace by clone": "REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))",
    "a personality": "REFUSED(syscall(SYS_personality, 0x40000))",
}
NEEDED = {
    "reading affinity": "({ cpu_set_t c; sched_getaffinity(0, sizeof c, &c) == 0; })",
    "pinning a thread": "({ cpu_set_t c; sched_getaffinity(0, 8, &c); sched_setaffinity(0, 8, &c) == 0; })",
    "reading limits": "({ struct rlimit r; getrlimit(RLIMIT_STACK, &r) == 0; })",
    "reading priority": "getpriority(PRIO_PROCESS, 0) >= 0",
    "naming a thread": 'prctl(PR_SET_NAME, "worker") == 0',
    "barriers": "syscall(SYS_membarrier, 0, 0, 0) >= 0",
    "sleeping": "usleep(10) == 0",
    "yielding": "sched_yield() == 0",
    "memory": "mmap(0, 1 << 21, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED",
    "huge pages": "({ void *p = aligned_alloc(1 << 21, 1 << 21); madvise(p, 1 << 21, MADV_HUGEPAGE) == 0; })",
    "descriptor flags": "fcntl(0, F_SETFD, FD_CLOEXEC) == 0",
    "an interval timer": "({ struct itimerval t = {{0}, {0}}; setitimer(ITIMER_REAL, &t, 0) == 0; })",
}


@pytest.mark.parametrize("checks", [DENIED, NEEDED], ids=["denied", "needed"])
def test_a_submission(checks: dict[str, str]) -> None:
    lines = [f"y[{k}] = {check};" for k, check in enumerate(checks.values())]
    given = draw()
    with child("\n".join(lines), HEADERS) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status == "ok", outcome
        held = running.outputs["y"][: len(checks)]
        assert [name for name, ok in zip(checks, held, strict=True) if ok != 1] == []
    given.close()


def test_bound_threads_start_behind_the_filter() -> None:
    """libgomp pins each thread as it starts it, and ends the program when it cannot."""
    given = draw()
    with child(
        f"#pragma omp parallel for proc_bind(spread) num_threads(2)\n{HONEST}", cores=(0, 1)
    ) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
    given.close()


COMPILER = """
import ctypes, errno, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def refused(*numbers):
    ctypes.set_errno(0)
    return libc.syscall(*numbers) == -1 and ctypes.get_errno() == errno.EPERM
def denied(make):
    try:
        make()
    except PermissionError:
        return True
    return False
nr = {"x86_64": (101, 272, 321, 298, 425), "aarch64": (117, 97, 280, 241, 425)}[os.uname().machine]
assert all(refused(number, 0, 0, 0, 0, 0) for number in nr), [refused(n, 0, 0, 0, 0, 0) for n in nr]
assert denied(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
assert denied(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()
assert subprocess.run(["/bin/echo", "a child"], capture_output=True).stdout == b"a child\\n"
pid = os.fork()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("done")
"""
"""ptrace, unshare, bpf, perf_event_open and io_uring_setup by number, then what a compiler needs."""


def test_a_compiler() -> None:
    command = [
        str(build.runner()),
        "launch-compiler",
        "",
        "0",
        "0",
        "0",
        "--",
        sys.executable,
        "-c",
        COMPILER,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


OLDER = """
import ctypes, os, sys, threading
go, said = threading.Event(), []
def older():
    go.wait()
    try:
        os.fork()
    except PermissionError:
        said.append("refused")
thread = threading.Thread(target=older)
thread.start()
assert ctypes.CDLL(sys.argv[1]).hb_guard_lock() == 0
go.set()
thread.join()
print(*said)
"""


def test_threads_older_than_the_filter_are_filtered_too() -> None:
    """NumPy's library starts threads when it is imported, before the Python runner locks itself in."""
    command = [sys.executable, "-c", OLDER, str(build.guard())]
    assert (
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "refused\n"
    )
