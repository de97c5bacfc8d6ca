"""Everything that can go wrong in a child comes back as an outcome, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpcagent_bench import paths, seal
from hpcagent_bench.harness import child_process, sandbox
from hpcagent_bench.harness.child_process import ChildProcess
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.runner.watch import COUNTED
from tests.native.native_kernels import (
    BINDING,
    HEAD,
    HONEST,
    SIGNATURE,
    child,
    draw,
    library,
    native,
    scalars,
    source,
)

pytestmark = pytest.mark.usefixtures("nothing_left")

CRASHES = {
    "writes an input": ("((double *)x)[3] = 1;", "SIGSEGV"),
    "null pointer": ("*(volatile int *)0 = 1;", "SIGSEGV"),
    "beyond the outputs": ("for (;;) *y++ = 1;", "SIGSEGV"),
    "abort": ("abort();", "SIGABRT"),
    "illegal instruction": ("__builtin_trap();", "SIGILL"),
    "exit": ("exit(0);", "status 0"),
    "quick exit": ("_exit(7);", "status 7"),
    "hangs up": (
        "for (int fd = 3; fd < 64; fd++) close(fd); for (;;) sleep(1);",
        "closed its control socket",
    ),
    "endless recursion": ("extern double deep(double); y[0] = deep(s);", "SIGSEGV"),
}
DEEP = "double deep(double v) { volatile double a[512]; a[0] = v; return deep(a[0]) + a[0]; }"


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("name", CRASHES)
def test_crashes_are_told_by_name(name: str, sealed: bool) -> None:
    body, said = CRASHES[name]
    given = draw()
    before = given.arrays["x"].copy()
    with child(body, DEEP, sealed=sealed) as running:
        outcome = running.call(given, scalars(), timeout_s=20)
        assert outcome.status == "crash"
        assert said in outcome.detail
        assert not running.alive
        assert running.call(given, scalars(), timeout_s=20) == outcome
    assert (given.arrays["x"] == before).all()
    given.close()


@pytest.mark.parametrize("body", ["for (;;) sleep(1);", "for (;;) {}"])
def test_a_kernel_that_never_returns_is_ended(body: str) -> None:
    given = draw()
    with child(body) as running:
        assert running.call(given, scalars(), timeout_s=0.2).status == "timeout"
        pid = running.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    given.close()


def test_a_constructor_that_exits_is_no_result() -> None:
    text = source(HONEST, "__attribute__((constructor)) static void first(void) { _exit(0); }")
    given = draw()
    with native(library(text)) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.detail) == ("crash", "exited with status 0 (load)")
    given.close()


def test_results_written_to_every_descriptor_do_not_count() -> None:
    """A constructor that knows the frames' form still does not know the number a call carries."""
    forged = """__attribute__((constructor)) static void first(void)
    {
        uint32_t ready[2] = {3, 0};
        struct { uint32_t kind, pad; uint64_t nonce, inside, cpu; } done = {5, 0, 1, 10, 10};
        for (int fd = 0; fd < 64; fd++) { write(fd, ready, sizeof ready); write(fd, &done, sizeof done); }
        _exit(0);
    }"""
    given = draw()
    with native(library(source(HONEST, forged))) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status in ("refused", "crash")
        assert outcome.inside_ns == 0
    given.close()


def test_a_forged_answer_during_the_call_is_refused() -> None:
    body = """struct { uint32_t kind, pad; uint64_t nonce, inside, cpu; } done = {5, 0, 1, 10, 10};
    for (int fd = 3; fd < 64; fd++) write(fd, &done, sizeof done);
    sleep(1);"""
    given = draw()
    with child(body) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "refused"
    given.close()


def test_a_child_cannot_claim_that_the_seal_failed() -> None:
    forged = """__attribute__((constructor)) static void first(void)
    {
        struct { uint32_t kind, pad; char text[15]; } fail = {6, 0, "seal: oops said"};
        for (int fd = 3; fd < 64; fd++) write(fd, &fail, sizeof fail);
    }"""
    given = draw()
    with child(HONEST, forged) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert (outcome.status, outcome.detail) == ("refused", "child: seal: oops said")
    given.close()


def test_threads_that_compute_while_a_draw_is_handed_over_are_refused() -> None:
    before = """static volatile double sink;
    static void *work(void *unused) { for (;;) sink += 1; return unused; }
    __attribute__((constructor)) static void first(void)
    { pthread_t t; pthread_create(&t, 0, work, 0); usleep(20000); }"""
    given = draw()
    with child(HONEST, before) as running:
        outcome = running.call(given, scalars(), timeout_s=10)  # the warm-up
        if outcome.status == "ok":  # else the thread was caught as early as that, after the answer
            # handing over takes microseconds, too short to compute much; mapping a workspace makes it last
            outcome = running.call(given, scalars(), timeout_s=10, workspace_bytes=256 << 20)
            assert outcome.detail == "protocol: computed outside the clocked call"
        assert outcome.status == "refused"
        assert outcome.detail.startswith(COUNTED)
    given.close()


def test_a_library_without_the_symbol_or_its_needs_is_refused(tmp_path: Path) -> None:
    text = f"{HEAD}void missing_function(void);\n{SIGNATURE} {{ missing_function(); }}\n"
    given = draw()
    built = sandbox.build(text, "c", "axpy_fp64", tmp_path / "made", extra=["-Wl,-z,undefs"], timeout_s=60)
    assert built.library is not None, built.log
    with native(built.library) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status == "refused"
        assert "missing_function" in outcome.detail
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"not a library")
    with native(junk) as running:
        assert running.call(given, scalars(), timeout_s=10).detail.startswith("library: ")
    given.close()


def test_memory_is_bounded() -> None:
    body = """y[0] = malloc(3L << 30) != NULL; y[1] = malloc(1 << 20) != NULL;"""
    given = draw()
    with child(body) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        assert running.outputs["y"][:2].tolist() == [0, 1]
    given.close()


def test_a_child_killed_from_outside() -> None:
    given = draw()
    with child(HONEST) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        os.kill(running.pid, signal.SIGKILL)
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status == "crash"
        assert "SIGKILL" in outcome.detail
    given.close()


def test_bubblewrap_that_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> list[str]:
        return [seal.bwrap(), "--ro-bind", "/no/such/place", "/x", "--"]

    path = library(source(HONEST))
    monkeypatch.setattr(seal, "grader", broken)
    given = draw()
    with native(path) as running:
        outcome = running.call(given, scalars(), timeout_s=10)
        assert outcome.status == "refused"
        assert outcome.detail.startswith("seal: ")
        assert "/no/such/place" in outcome.detail
    given.close()


def test_a_child_that_is_never_called_is_closed_quietly() -> None:
    path = library(source(HONEST))
    for _ in range(5):
        Child.native(path, BINDING, cores=[0], memory_bytes=None, stack_mb=8).close()


def test_children_outlive_the_thread_that_made_them() -> None:
    from concurrent.futures import ThreadPoolExecutor

    given = draw()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(child, HONEST).result()
    time.sleep(0.05)
    assert running.call(given, scalars(), timeout_s=10).status == "ok"
    running.close()
    given.close()


JUDGE = """
import os, sys, time
from tests.native.native_kernels import child, draw, scalars
running = child("for (;;) {}")
running._greet()
print(running.pid, flush=True)
running.call(draw(), scalars(), timeout_s=60)
"""


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_a_killed_judge_leaves_no_child(delay: float) -> None:
    command = [sys.executable, "-c", JUDGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=paths.project_root()) as judge:
        assert judge.stdout is not None
        pid = int(judge.stdout.readline())
        time.sleep(delay)
        judge.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_a_child_that_the_machine_does_not_stop_is_the_judges_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "FREEZE_TIMEOUT_S", 0.0)
    monkeypatch.setattr(ChildProcess, "_stands", lambda self: False)
    given = draw()
    with child(HONEST) as running:
        outcome = running.call(given, scalars(), timeout_s=20)
    given.close()
    assert outcome.status == "refused"
    assert outcome.detail.startswith("seal: ")
