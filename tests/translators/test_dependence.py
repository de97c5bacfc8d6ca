"""Only loops whose iterations are provably independent are made parallel."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.translators import emit, frontend
from hpcagent_bench.translators.dependence import parallel_loop

ARRAYS = {"x": "(N,)", "ip": {"shape": "(N,)", "dtype": "int64"}, "m": "(N, N)", "out": "(N,)"}
PARALLEL_LINE = {
    "for i in range(N):\n        out[i] = x[i]": 2,
    "for i in range(N - 1):\n        out[i] = out[i + 1]": None,
    "for i in range(1, N):\n        out[i] = out[i - 1]": None,
    "for i in range(N):\n        out[0] = x[i]": None,
    "for i in range(N):\n        out[ip[i]] += x[i]": None,
    "for i in range(N):\n        out[i] = x[ip[i]]": 2,
    "for i in range(0, N // 2):\n        out[2 * i] = out[2 * i + 1]": 2,
    "for i in range(0, N // 2):\n        out[2 * i] = out[2 * i + 2]": None,
    "for i in range(N):\n        t = x[i]\n        out[i] = t * t": 2,
    "t = 0.0\n    for i in range(N):\n        out[i] = t\n        t = x[i]": None,
    "t = 0.0\n    for i in range(N):\n        t = x[i]\n        out[i] = t\n    out[0] = t": None,
    "for i in range(N):\n        if x[i] > 0:\n            break\n        out[i] = 1.0": None,
    "for i in range(N):\n        for j in range(N):\n            m[j, i] = x[j]": 2,
    "for i in range(N):\n        for j in range(N):\n            out[j] += m[i, j]": 3,
    "for i in range(N):\n        for j in range(N):\n            out[i] += m[i, j]": 2,
    "for i in range(N):\n        for j in range(i):\n            m[i, j] = m[j, i]": 3,
    "for i in range(N):\n        for j in range(N):\n            m[i, j] = m[j, i]": None,
    "for i in range(0, N, 2):\n        out[i] = x[i]": None,
    "for j in range(N):\n        for i in range(j + 1, N):\n            out[i] -= m[j, i] * out[j]": 3,
    "for j in range(N):\n        for i in range(j, N):\n            out[i] -= m[j, i] * out[j]": None,
}


@pytest.mark.parametrize(("body", "line"), PARALLEL_LINE.items(), ids=list(PARALLEL_LINE))
def test_choice_of_the_parallel_loop(body, line, make_kernel):
    source = f"def probe(x, ip, m, out, N):\n    {body}\n"
    chosen = parallel_loop(frontend.translate(make_kernel(source, ARRAYS, ["m", "out"])))
    assert (chosen.line if chosen else None) == line


def test_kernels_that_stay_serial():
    serial = {"argmax_with_index", "ext_war_unit", "tsvc_2_s311", "wf_triangular"}
    for name in spec.discover():
        text = emit(spec.load(name), "numba")
        assert text.count(" in prange(") == (0 if name in serial else 1), name
        assert f"@njit(parallel={name not in serial}, cache=True, fastmath=False)" in text


@pytest.mark.parametrize("name", sorted(spec.discover()))
def test_the_parallel_loop_gives_the_same_in_any_order(name, inputs, call_numpy):
    kernel = spec.load(name)
    params = dict.fromkeys(kernel.size_symbols, 23)
    expected = inputs(kernel, params)
    shuffled = {array: values.copy() for array, values in expected.items()}
    call_numpy(kernel, expected, params)
    text = emit(kernel, "numba").replace("from numba import", "# ").replace("@njit(", "# ")
    rng = np.random.default_rng(5)
    namespace = {"prange": lambda *bounds: map(int, rng.permutation(range(*bounds)))}
    exec(text, namespace)
    values = {**shuffled, **params}
    namespace[kernel.function](*(values[argument] for argument in kernel.arg_order))
    for array in kernel.arrays:
        np.testing.assert_array_equal(shuffled[array], expected[array], strict=True)
