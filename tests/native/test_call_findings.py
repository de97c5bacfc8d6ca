"""What the judge finds out about a call beside its time: late work, modes, overruns, cores, memory."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench.harness.child_process import ChildProcess
from hpcagent_bench.harness.runner import environment, proc, start
from hpcagent_bench.harness.runner.proc import Budget
from hpcagent_bench.harness.runner.watch import Refused, Used
from tests.native.native_kernels import BINDING, HONEST, N, child, draw, native, scalars, source

pytestmark = pytest.mark.usefixtures("nothing_left")

ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets MXCSR and the x87 control word")
LATE = """static volatile int go; static volatile double sink; static double *out;
static void *late(void *unused) { while (!go) usleep(50); for (;;) sink += 1; return unused; }
__attribute__((constructor)) static void first(void) { pthread_t t; pthread_create(&t, 0, late, 0); }"""


@pytest.fixture
def slow_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge slow to stop a child, as on a loaded machine: 0.1 s, and on while the child computes."""
    freeze = ChildProcess.freeze

    def slow(self: ChildProcess) -> None:
        start, cpu = time.monotonic(), proc.cpu_ns(self.pid)
        while time.monotonic() < start + 0.1 or 1_000_000 < proc.cpu_ns(self.pid) - cpu < 20_000_000:
            time.sleep(0.01)
        freeze(self)

    monkeypatch.setattr(ChildProcess, "freeze", slow)


@pytest.mark.usefixtures("slow_to_stop")
def test_a_thread_that_computes_after_the_answer_is_refused() -> None:
    given = draw()
    with child(HONEST + " go = 1; usleep(200);", LATE, cores=(0, 1)) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.detail) == ("refused", "protocol: computed after it returned")
    given.close()


@pytest.mark.usefixtures("slow_to_stop")
@pytest.mark.parametrize("body", [HONEST, f"#pragma omp parallel for\n{HONEST}"])
def test_threads_that_fall_asleep_after_the_answer_are_not(body: str) -> None:
    given = draw(70_000)
    with child(body, cores=(0, 1)) as running:
        for _ in range(5):
            outcome = running.call(given, scalars(70_000), timeout_s=10)
            assert outcome.status == "ok", outcome
            assert 0 <= outcome.late_cpu_ns <= outcome.cpu_ns
    given.close()


def test_an_empty_kernel_reads_a_nanosecond_or_more() -> None:
    given = draw()
    with child("") as running:
        outcomes = [running.call(given, scalars(), timeout_s=10) for _ in range(20)]
    assert all(outcome.status == "ok" for outcome in outcomes)
    assert all(1 <= outcome.inside_ns < outcome.outside_ns for outcome in outcomes)
    given.close()


DENORMALS = "volatile double tiny = 4e-320; y[0] = tiny * 2; y[1] = tiny * 2 == 0;"
FLUSH = "__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);"
FLUSHED = "flush-to-zero, denormals-are-zero"


@ON_X86
def test_modes_that_a_library_sets_when_loaded_are_put_right_and_told() -> None:
    given = draw()
    with child(DENORMALS, f"__attribute__((constructor)) static void first(void) {{ {FLUSH} }}") as running:
        for _ in range(2):
            outcome = running.call(given, scalars(), timeout_s=10)
            assert (outcome.status, outcome.fp_modes) == ("ok", f"{FLUSHED} at load")
            assert running.outputs["y"][:2].tolist() == [8e-320, 0]
    given.close()


@ON_X86
def test_a_library_linked_with_fast_maths_computes_denormals_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "fast.c").write_text(source(DENORMALS))
    command = ["gcc", "-Ofast", "-fno-finite-math-only", "-shared", "-fPIC", "fast.c", "-o", "fast.so"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    given = draw()
    with native(tmp_path / "fast.so") as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.fp_modes) == ("ok", f"{FLUSHED} at load")
        assert running.outputs["y"][:2].tolist() == [8e-320, 0]
    given.close()


CHANGES = {
    "flush": (FLUSH, FLUSHED),
    "rounding": ("fesetround(FE_UPWARD);", "rounding"),
    "traps": ("feenableexcept(FE_DIVBYZERO);", "traps"),
    "precision": ('unsigned short w = 0x027f; __asm__ volatile("fldcw %0" : : "m"(w));', "precision"),
}


@ON_X86
@pytest.mark.parametrize("name", CHANGES)
def test_modes_that_a_call_leaves_changed_do_not_reach_the_next(name: str) -> None:
    change, said = CHANGES[name]
    body = f"volatile double one = 1, three = 3; y[2] = one / three; {DENORMALS} {change}"
    given = draw()
    with child(body, "#include <fenv.h>\n") as running:
        for _ in range(3):
            outcome = running.call(given, scalars(), timeout_s=10)
            assert (outcome.status, outcome.fp_modes) == ("ok", f"{said} by the call")
            assert running.outputs["y"][:3].tolist() == [8e-320, 0, 1 / 3]
    given.close()


def test_modes_changed_and_put_back_are_no_matter() -> None:
    body = f"int old = fegetround(); fesetround(FE_DOWNWARD); {HONEST} fesetround(old);"
    given = draw()
    with child(body, "#include <fenv.h>\n") as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.fp_modes) == ("ok", "")
    given.close()


@pytest.mark.parametrize("n", [N, 512, 4096])  # 512 and 4096 doubles fill their pages to the last byte
@pytest.mark.parametrize("beyond", [0, 7, 100])
def test_a_write_past_the_end_of_an_output_is_refused(n: int, beyond: int) -> None:
    given = draw(n)
    with child(f"{HONEST} y[N + {beyond}] = 1;") as running:
        outcome = running.call(given, scalars(n), timeout_s=10)
        assert (outcome.status, outcome.overrun) == ("refused", "y")
        assert outcome.detail == "overrun: writes past the end of y"
        assert not running.alive
    given.close()


@pytest.mark.parametrize(
    ("size", "written", "overrun"), [(100, 99, ""), (100, 100, "workspace"), (4096, 4096, "workspace")]
)
def test_a_write_past_the_end_of_the_workspace_is_refused(size: int, written: int, overrun: str) -> None:
    given = draw()
    with child(f"{HONEST} workspace[{written}] = 1;") as running:
        outcome = running.call(given, scalars(), timeout_s=10, workspace_bytes=size)
        assert outcome.overrun == overrun
        assert (outcome.status == "ok") == (overrun == "")
    given.close()


def test_writing_the_last_element_is_no_overrun() -> None:
    for n in (1, 511, 512, 513):
        given = draw(n)
        with child(HONEST) as running:
            assert running.call(given, scalars(n), timeout_s=10).status == "ok"
            np.testing.assert_allclose(running.outputs["y"], given.arrays["y"] + 2 * given.arrays["x"])
        given.close()


BUSY = """static void *busy(void *core)
{
    cpu_set_t one; CPU_ZERO(&one); CPU_SET((int)(intptr_t)core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    struct timespec t, u; clock_gettime(CLOCK_MONOTONIC, &t);
    do clock_gettime(CLOCK_MONOTONIC, &u);
    while ((u.tv_sec - t.tv_sec) * 1e3 + (u.tv_nsec - t.tv_nsec) / 1e6 < 300);
    return NULL;
}"""
TWO = "pthread_t t; pthread_create(&t, 0, busy, (void *)1); busy((void *)0); pthread_join(t, 0); " + HONEST


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a core that was not granted")
def test_affinity_undone_is_told_by_cpu_time() -> None:
    given = draw()
    with child(TWO, "#include <sched.h>\n#include <time.h>\n" + BUSY, cores=(0,)) as running:
        outcome = running.call(given, scalars(), timeout_s=30)
        if outcome.status == "ok":  # the neighbours left it no second core: then it used none
            assert outcome.cpu_ns <= outcome.outside_ns * 1.1
        else:
            assert (outcome.status, outcome.detail[:6]) == ("refused", "cores:")
            assert outcome.detail.endswith("on 1 cores")
    with child(TWO, "#include <sched.h>\n#include <time.h>\n" + BUSY, cores=(0, 1)) as running:
        assert running.call(given, scalars(), timeout_s=30).status == "ok"
    given.close()


def test_cpu_time_over_cores_and_wall_by_numbers() -> None:
    def used(cpu_ms: float, cores: int) -> Used:
        return Used(int(cpu_ms * 1e6), 0, 0, wall_ns=100_000_000, cores=cores, threads=1)

    used(101, 1).check()
    used(203, 2).check()
    with pytest.raises(Refused, match=r"used 110\.0 ms of CPU time in 100\.0 ms on 1 cores"):
        used(110, 1).check()
    with pytest.raises(Refused, match="on 2 cores"):
        used(210, 2).check()


CROWD = """static void *rest(void *unused) { sleep(3); return unused; }
static void crowd(int n)
{
    pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536);
    for (int k = 0; k < n; k++) { pthread_t t; pthread_create(&t, &small, rest, 0); }
}"""


def test_a_crowd_of_threads_ends_the_child() -> None:
    given = draw()
    with child("crowd(300); sleep(3);", CROWD) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.detail) == ("crash", "more than 68 threads (call)")
    with child(f"crowd(20); usleep(300000); {HONEST}", CROWD) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
    given.close()


def test_resident_memory_beyond_the_budget_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "char *p = malloc(100 << 20); for (long i = 0; i < 100 << 20; i += 4096) p[i] = 1; usleep(500000);"
    given = draw()
    with child(body) as running:
        assert running.call(given, scalars(), timeout_s=20).status == "ok"
    asked = (1 << 30) + 2 * (64 << 20)  # the grant, and a stack for the core and one more
    monkeypatch.setattr(start, "RESIDENT_SLACK", (50 << 20) - asked)
    with child(body) as running:
        outcome = running.call(given, scalars(), timeout_s=20)
        assert (outcome.status, outcome.detail) == ("crash", "more memory than 50 MiB (call)")
    given.close()


def test_a_budget_by_numbers() -> None:
    assert Budget(100_000, None).excess(os.getpid()) == ""
    assert Budget(0, None).excess(os.getpid()) == "more than 0 threads"
    assert Budget(100_000, 1 << 20).excess(os.getpid()) == "more memory than 1 MiB"
    assert Budget(0, 0).excess(2**22 + 1) == ""  # no such process


def test_endless_output_goes_nowhere() -> None:
    body = (
        """static char block[1 << 16]; for (int k = 0; k < 2000; k++) {
    fwrite(block, 1, sizeof block, stderr); fwrite(block, 1, sizeof block, stdout); }"""
        + HONEST
    )
    given = draw()
    with child(body) as running:
        assert running.call(given, scalars(), timeout_s=20).status == "ok"
        assert running._process.printed() == ""
    given.close()


def test_private_folders_are_small() -> None:
    body = """static char block[1 << 20]; char name[64]; y[0] = 0;
    for (int k = 0; k < 200; k++) { snprintf(name, sizeof name, "%s/%d", k % 2 ? "/tmp" : "/dev/shm", k);
    FILE *f = fopen(name, "w"); if (!f) continue;
    for (int m = 0; m < 15; m++) y[0] += fwrite(block, 1, sizeof block, f);
    fclose(f); }"""
    given = draw()
    with child(body) as running:
        outcome = running.call(given, scalars(), timeout_s=60)
        assert outcome.status == "ok", outcome
        assert 64 << 20 <= running.outputs["y"][0] <= 192 << 20
    given.close()


def test_no_two_libraries_share_a_name() -> None:
    names = []
    for body in (HONEST, HONEST + " y[0] += 1;"):
        given = draw()
        with child(body) as running:
            assert running.call(given, scalars(), timeout_s=10).status == "ok"
            names.append({name for name in running.mapped_files() if name.startswith("kernel")})
        given.close()
    assert len(names[0]) == len(names[1]) == 1
    assert names[0] != names[1]


def test_every_thread_runtime_is_told_the_granted_cores() -> None:
    told = environment.thread_environment([3, 5, 7], 8)
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS")
    assert {told[name] for name in counts} == {"3"}
    assert environment.numba_threads([3, 5, 7])["NUMBA_NUM_THREADS"] == "3"
    assert (told["OMP_WAIT_POLICY"], told["GOMP_SPINCOUNT"], told["KMP_BLOCKTIME"]) == ("passive", "0", "0")
    assert told["OMP_PLACES"] == "{3},{5},{7}"
    assert BINDING.symbol == "axpy_fp64"


PATCH = """#include <dlfcn.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/syscall.h>
static volatile double sink;
static void compute(int us)
{
    struct timespec t, u; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    do { sink += 1; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &u); }
    while ((u.tv_sec - t.tv_sec) * 1e6 + (u.tv_nsec - t.tv_nsec) / 1e3 < us);
}
static void patch(const char *name, void *to)
{
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void *from = dlsym(RTLD_DEFAULT, name);
    memcpy(jump + 2, &to, 8);
    mprotect((char *)((uintptr_t)from & ~4095L), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(from, jump, sizeof jump);
}
"""
PATCHED = (
    PATCH
    + """static ssize_t patched(int fd, const void *frame, size_t bytes, int flags)
{
    if (*(const uint32_t *)frame == 3) compute(MICROSECONDS);
    return syscall(SYS_sendto, fd, frame, bytes, flags, 0, 0);
}
__attribute__((constructor)) static void first(void) { patch("send", patched); }"""
)
"""Puts code of its own in the place of the runner's send: it computes on the draw before the clock starts."""


@ON_X86
def test_the_runner_patched_to_compute_before_the_clock_is_refused() -> None:
    given = draw()
    with child(HONEST, PATCHED.replace("MICROSECONDS", "5000")) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"  # the warm-up
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.detail) == ("refused", "protocol: computed outside the clocked call")
    given.close()


@ON_X86
def test_what_it_computes_before_the_clock_is_told_however_little() -> None:
    given = draw()
    used = {}
    for us in (0, 500):
        with child(HONEST, PATCHED.replace("MICROSECONDS", str(us))) as running:
            outcomes = [running.call(given, scalars(), timeout_s=10) for _ in range(9)]
        assert {outcome.status for outcome in outcomes} == {"ok"}
        assert outcomes[0].load_cpu_ns == 0
        used[us] = [outcome.load_cpu_ns for outcome in outcomes[1:]]
    assert 0 < min(used[0]) < 450_000 < max(used[500])
    given.close()


HALF = (
    PATCH
    + """static int half(clockid_t clock, struct timespec *t)
{
    syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_MONOTONIC) { uint64_t ns = (t->tv_sec * 1000000000ul + t->tv_nsec) / 2;
    t->tv_sec = ns / 1000000000ul; t->tv_nsec = ns % 1000000000ul; }
    return 0;
}
__attribute__((constructor)) static void first(void) { patch("clock_gettime", half); }"""
)


@ON_X86
def test_a_clock_patched_in_the_process_is_told_and_not_believed() -> None:
    given = draw()
    with child("compute(20000);", HALF) as running:
        for _ in range(3):
            outcome = running.call(given, scalars(), timeout_s=10)
            assert (outcome.status, outcome.skewed) == ("ok", True)
            assert outcome.inside_ns >= 19_999_000  # it computes until 20 ms have passed, less the overhead
    given.close()


def test_clocks_left_alone_agree() -> None:
    given = draw()
    with child(HONEST) as running:
        outcomes = [running.call(given, scalars(), timeout_s=10) for _ in range(30)]
    assert sum(outcome.skewed for outcome in outcomes) <= 3  # interrupted right between the two clocks
    given.close()
