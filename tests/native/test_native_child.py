"""Honest calls: right values, clocks that make sense, frozen outputs, three languages."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hpcagent_bench.harness.native_call import Child, Draw, layout_for
from hpcagent_bench.toolchain.abi import Arg, Binding
from tests.native.native_kernels import BINDING, HEAD, HONEST, N, child, draw, library, native, scalars

pytestmark = pytest.mark.usefixtures("nothing_left")

CPP = """#include <cstdint>
#include <vector>
extern "C" void axpy_fp64(const double *x, double *y, int64_t N, double s, uint8_t *, int64_t) {
    std::vector<double> t(x, x + N);
    for (auto &v : t) v *= s;
    for (int64_t i = 0; i < N; i++) y[i] += t[i];
}
"""
FORTRAN = """subroutine axpy(x, y, n, s, workspace, workspace_size) bind(C, name='axpy_fp64')
  use iso_c_binding
  integer(c_int64_t), value :: n, workspace_size
  real(c_double), intent(in) :: x(n)
  real(c_double), intent(inout) :: y(n)
  real(c_double), value :: s
  type(c_ptr), value :: workspace
  y = y + s * x
end subroutine
"""


@pytest.mark.parametrize("sealed", [True, False])
def test_every_call_starts_from_its_own_draw(sealed: bool) -> None:
    with child(HONEST, sealed=sealed) as running:
        for seed in range(4):
            given = draw(seed=seed)
            expected = given.arrays["y"] + 2.0 * given.arrays["x"]
            outcome = running.call(given, scalars(), timeout_s=10)
            assert outcome.status == "ok", outcome
            assert 0 < outcome.inside_ns <= outcome.outside_ns
            assert outcome.cpu_ns > 0
            np.testing.assert_array_max_ulp(running.outputs["y"], expected, maxulp=1)
            given.close()


@pytest.mark.parametrize(("language", "text"), [("cpp", CPP), ("fortran", FORTRAN)])
def test_other_languages(language: str, text: str) -> None:
    given = draw()
    with native(library(text, language)) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        np.testing.assert_allclose(
            running.outputs["y"], given.arrays["y"] + 2 * given.arrays["x"], rtol=1e-15
        )
    given.close()


def test_sizes_may_change_between_calls() -> None:
    with child(HONEST) as running:
        for n in (1, 70_000, 3, 70_000):
            given = draw(n)
            assert running.call(given, scalars(n), timeout_s=10).status == "ok"
            assert running.outputs["y"].shape == (n,)
            np.testing.assert_allclose(running.outputs["y"], given.arrays["y"] + 2 * given.arrays["x"])
            given.close()


def test_scalars_of_every_type_arrive() -> None:
    kinds = ("float32", "float64", "int32", "int64", "uint8")
    args = [Arg("out", "ptr", "float64", False, ("5",), "output")]
    args += [Arg(f"s_{kind}", "scalar", kind, True, None, "scalar") for kind in kinds]
    bound = Binding("axpy", "axpy_fp64", "c-abi-v2", tuple(args))
    text = HEAD + (
        "void axpy_fp64(double *out, float a, double b, int32_t c, int64_t d, uint8_t e,"
        " uint8_t *w, int64_t n)\n"
        "{ out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; }\n"
    )
    given = Draw.allocate(layout_for(bound, {"out": (5,)}, {"out": "float64"}))
    values = {"s_float32": 0.5, "s_float64": -2.25, "s_int32": -7, "s_int64": 1 << 40, "s_uint8": 250}
    with Child.native(library(text), bound, cores=[0], memory_bytes=None, stack_mb=8) as running:
        assert running.call(given, values, timeout_s=10).status == "ok"
        assert running.outputs["out"].tolist() == [0.5, -2.25, -7, 1 << 40, 250]
    given.close()


def test_workspace_is_aligned_zeroed_and_absent_unless_asked_for() -> None:
    body = """y[0] = (double)((uintptr_t)workspace % 256); y[1] = (double)workspace_size; y[2] = 0;
    for (int64_t i = 0; i < workspace_size; i++) { y[2] += workspace[i]; workspace[i] = 9; }
    y[3] = workspace == NULL;"""
    given = draw()
    with child(body) as running:
        for asked in (5000, 100, 5000, 0):
            assert running.call(given, scalars(), timeout_s=10, workspace_bytes=asked).status == "ok"
            assert running.outputs["y"][:4].tolist() == [0, asked, 0, asked == 0]
    given.close()


def test_threads_are_those_of_the_granted_cores() -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))[:2]
    body = """int seen[64] = {0}, n = 0;
    #pragma omp parallel reduction(+:n)
    { n += 1; seen[sched_getcpu() % 64] = 1; }
    y[0] = n;
    for (int i = 0; i < 64; i++) y[i + 1] = seen[i];"""
    given = draw()
    with child(body, "#include <sched.h>", cores=cores) as running:
        for _ in range(10):  # resting threads of an OpenMP team are no threads that compute
            assert running.call(given, scalars(), timeout_s=10).status == "ok"
            assert running.outputs["y"][0] == len(cores)
            assert {c for c in range(64) if running.outputs["y"][c + 1]} == set(cores)
    given.close()


def test_the_child_stands_still_between_calls() -> None:
    given = draw()
    with child(HONEST) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        state = Path(f"/proc/{running.pid}/stat").read_text().rpartition(") ")[2][0]
        assert state == "T"
        assert running.alive
    given.close()
    assert not running.alive
    assert running.call(given, scalars(), timeout_s=1).detail == "the child was closed"


def test_children_beside_each_other() -> None:
    def work(seed: int) -> bool:
        given = draw(seed=seed)
        with child(HONEST) as running:
            ok = all(running.call(given, scalars(), timeout_s=30).status == "ok" for _ in range(5))
            right = np.allclose(running.outputs["y"], given.arrays["y"] + 2 * given.arrays["x"])
        given.close()
        return ok and right

    child(HONEST).close()  # built once, before the threads share it
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_an_empty_array_is_an_array() -> None:
    given = draw(0)
    with child(HONEST) as running:
        assert running.call(given, scalars(0), timeout_s=10).status == "ok"
        assert running.outputs["y"].shape == (0,)
    given.close()


def test_the_binding_is_the_contract() -> None:
    assert [arg.name for arg in BINDING.pointers] == ["x", "y"]
    assert N % 8
