"""The Python runner: numba functions called by the same protocol."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.harness.native_call import Child
from tests.native.native_kernels import BINDING, draw, scalars

pytestmark = pytest.mark.usefixtures("nothing_left")

MODULE = """
from numba import njit, prange
import numpy as np

@njit(parallel=True, cache=True, fastmath=False)
def axpy(s, N, y, x):
    for i in prange(N):
        y[i] = y[i] + s * x[i]
"""
ORDER = ("s", "N", "y", "x")


@pytest.mark.parametrize("sealed", [True, False])
def test_a_numba_reference_in_its_own_parameter_order(sealed: bool) -> None:
    with Child.numba(MODULE, "axpy", ORDER, BINDING, cores=[0, 1], sealed=sealed) as running:
        for n in (1003, 5000):
            given = draw(n, seed=n)
            outcome = running.call(given, scalars(n), timeout_s=60)
            assert outcome.status == "ok", outcome
            assert 0 < outcome.inside_ns <= outcome.outside_ns
            expected = given.arrays["y"] + 2.0 * given.arrays["x"]
            np.testing.assert_array_max_ulp(running.outputs["y"], expected, maxulp=1)
            given.close()


def test_a_reference_that_does_not_compile_is_refused() -> None:
    text = "from numba import njit\n@njit\ndef axpy(s, N, y, x):\n    y[0] = undefined_name\n"
    given = draw()
    with Child.numba(text, "axpy", ORDER, BINDING, cores=[0]) as running:
        outcome = running.call(given, scalars(), timeout_s=60)
        assert outcome.status == "refused"
        assert "undefined_name" in outcome.detail
    given.close()


def test_a_module_that_cannot_be_loaded_is_refused() -> None:
    given = draw()
    with Child.numba("import no_such_module\n", "axpy", ORDER, BINDING, cores=[0]) as running:
        assert "no_such_module" in running.call(given, scalars(), timeout_s=60).detail
    given.close()
