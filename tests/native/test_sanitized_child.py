"""Sanitized runs: a memory error ends the child, undefined behaviour is told, honest code passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench import paths
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.runner import build, sanitizer_report
from tests.native.native_kernels import BINDING, HONEST, draw, scalars, source

pytestmark = pytest.mark.usefixtures("nothing_left")

FORTRAN = """subroutine axpy(x, y, n, s, workspace, workspace_size) bind(C, name='axpy_fp64')
  use iso_c_binding
  integer(c_int64_t), value :: n, workspace_size
  real(c_double), intent(in) :: x(n)
  real(c_double), intent(inout) :: y(n)
  real(c_double), value :: s
  type(c_ptr), value :: workspace
  y(1:n+{more}) = y(1:n+{more}) + s * x(1:n+{more})
end subroutine
"""
CPP = """#include <cstdint>
#include <vector>
extern "C" void axpy_fp64(const double *x, double *y, int64_t N, double s, uint8_t *, int64_t) {{
    std::vector<double> t(x, x + N);
    for (int64_t i = 0; i < N; i++) y[i] += s * t[i + {more}];
}}
"""
ERRORS = {
    "reads past an input": ("y[0] = x[N];", "heap-buffer-overflow (READ of size 8)"),
    "writes past an output": ("y[N] = 1;", "heap-buffer-overflow (WRITE of size 8)"),
    "writes before an output": ("y[-1] = 1;", "heap-buffer-overflow (WRITE of size 8)"),
    "writes past the workspace": ("workspace[40] = 1;", "heap-buffer-overflow (WRITE of size 1)"),
    "uses freed memory": (
        "double *p = malloc(8); free(p); y[0] = *p;",
        "heap-use-after-free (READ of size 8)",
    ),
    "frees twice": ("void *volatile p = malloc(8); free(p); free(p);", "attempting"),
    "leaves its stack": (
        "volatile int k = 4; double a[4]; a[0] = x[0]; y[0] = a[k];",
        "stack-buffer-overflow",
    ),
    "follows a null pointer": ("*(volatile int *)0 = 1;", "SEGV"),
}


@pytest.fixture(params=["gcc", "llvm"])
def family(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if not build.sanitizer_available(name):
        pytest.skip(f"no sanitizers of {name} here")
    return name


def sanitized(text: str, family: str, language: str = "c") -> Child:
    folder = paths.cache_root() / "sanitized" / family
    built = sandbox.build(
        text, language, "axpy_fp64", folder, timeout_s=60, family=family, purpose="sanitized"
    )
    assert built.library is not None, built.log
    return Child.native(built.library, BINDING, cores=(0,), memory_bytes=1 << 30, stack_mb=64, sanitized=True)


def test_honest_code_passes_with_right_values(family: str) -> None:
    given = draw()
    with sanitized(source(f"#pragma omp parallel for\n{HONEST}"), family) as running:
        for _ in range(2):
            outcome = running.call(given, scalars(), timeout_s=20, workspace_bytes=40)
            assert outcome.status == "ok", outcome
            np.testing.assert_allclose(running.outputs["y"], given.arrays["y"] + 2 * given.arrays["x"])
            assert running.sanitizer_notes() == ""
    given.close()


@pytest.mark.parametrize("name", ERRORS)
def test_memory_errors_end_the_child(name: str, family: str) -> None:
    body, said = ERRORS[name]
    given = draw()
    with sanitized(source(body), family) as running:
        outcome = running.call(given, scalars(), timeout_s=20, workspace_bytes=40)
        assert outcome.status == "crash"
        assert outcome.detail.startswith(f"sanitizer: {said}")
        assert ("axpy.c:12" in outcome.detail) == (family == "gcc")
    given.close()


def test_undefined_behaviour_is_told_and_no_more(family: str) -> None:
    body = f"int big = 2147483647; volatile int one = 1; {HONEST} y[0] = big + one;"
    given = draw()
    with sanitized(source(body), family) as running:
        assert running.call(given, scalars(), timeout_s=20).status == "ok"
        notes = running.sanitizer_notes()
        assert notes.startswith("axpy.c:12:")
        assert "signed integer overflow" in notes
        expected = given.arrays["y"] + 2 * given.arrays["x"]
        np.testing.assert_allclose(running.outputs["y"][1:], expected[1:])
    given.close()


@pytest.mark.parametrize(("language", "text"), [("cpp", CPP), ("fortran", FORTRAN)])
def test_other_languages(language: str, text: str) -> None:
    if not build.sanitizer_available("gcc"):
        pytest.skip("no sanitizers of gcc here")
    given = draw()
    with sanitized(text.format(more=0), "gcc", language) as running:
        assert running.call(given, scalars(), timeout_s=20).status == "ok"
    with sanitized(text.format(more=1), "gcc", language) as running:
        assert running.call(given, scalars(), timeout_s=20).detail.startswith(
            "sanitizer: heap-buffer-overflow"
        )
    given.close()


def test_a_submission_cannot_switch_the_sanitizer_off(family: str) -> None:
    before = """const char *__asan_default_options(void) { return "halt_on_error=0:exitcode=0"; }
    __attribute__((constructor)) static void first(void) { setenv("ASAN_OPTIONS", "halt_on_error=0", 1); }"""
    given = draw()
    with sanitized(source("y[N] = 1;", before), family) as running:
        assert running.call(given, scalars(), timeout_s=20).detail.startswith(
            "sanitizer: heap-buffer-overflow"
        )
    given.close()


def test_a_memory_error_is_found_behind_much_undefined_behaviour(family: str) -> None:
    overflows = "".join(f"volatile int v{k} = 2147483647; v{k} = v{k} + 1;" for k in range(60))
    given = draw()
    with sanitized(source(f"{overflows} y[N] = 1;"), family) as running:
        assert running.call(given, scalars(), timeout_s=20).detail.startswith(
            "sanitizer: heap-buffer-overflow"
        )
        assert len(running.sanitizer_notes().splitlines()) == sanitizer_report.LINES_MAX
    given.close()


def test_a_family_that_is_not_there_is_not_available(tmp_path: Path) -> None:
    assert not build.sanitizer_available("no-such-family")
    assert not list(tmp_path.iterdir())


def test_reports_in_short() -> None:
    printed = """/build/axpy.c:12:74: runtime error: left shift of 7 by 31 places
axpy.c:13:1: runtime error: load of misaligned address 0x7ffe12 for type 'double'
=================================================================
==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60200000 at pc 0x55 bp 0x7f sp 0x7f
WRITE of size 8 at 0x60200000 thread T0
    #0 0x5555 (/grading/kernel.so+0x1234)
"""
    short = "sanitizer: heap-buffer-overflow (WRITE of size 8)"
    assert sanitizer_report.memory_error(printed) == short
    named = """    #0 0x7f in __interceptor_memcpy ../../libsanitizer/asan/asan_interceptors.cpp:827
    #1 0x7f in axpy_fp64 /build/axpy.c:12
    #2 0x55 in run /cache/runner/abc/runner.c:298

allocated by thread T0 here:
    #0 0x7f in other /build/other.c:3
"""
    assert sanitizer_report.memory_error(printed + named) == f"{short} at axpy.c:12"
    assert sanitizer_report.undefined(printed).splitlines() == [
        "axpy.c:12:74: runtime error: left shift of 7 by 31 places",
        "axpy.c:13:1: runtime error: load of misaligned address an address for type 'double'",
    ]
    assert sanitizer_report.memory_error("killed by SIGABRT") == ""
    assert sanitizer_report.undefined("hello") == ""
