"""The emitted C and numba of eight kernels compute what their NumPy references compute."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.corpus import spec

KERNELS = (
    *("argmax_with_index", "ext_war_unit", "fuse_diamond", "tsvc_2_s115", "tsvc_2_s231", "tsvc_2_s311"),
    *("tsvc_2_vtvtv", "wf_triangular"),
)
SIZES = (1, 2, 3, 37, 65)


def copied(arrays):
    return {name: array.copy() for name, array in arrays.items()}


def both(kernel, size, inputs, call_numpy, call):
    """What NumPy and ``call`` make of the same inputs."""
    params = dict.fromkeys(kernel.size_symbols, size)
    expected = inputs(kernel, params, seed=size)
    actual = copied(expected)
    call_numpy(kernel, expected, params)
    call(actual, params)
    return expected, actual


@pytest.mark.parametrize("name", KERNELS)
def test_emitted_c_equals_numpy_bit_for_bit(name, inputs, call_numpy, build_c):
    kernel = spec.load(name)
    call = build_c(kernel)
    for size in SIZES:
        expected, actual = both(kernel, size, inputs, call_numpy, call)
        for array in kernel.arrays:
            np.testing.assert_array_equal(actual[array], expected[array], strict=True)


@pytest.mark.parametrize("name", KERNELS)
def test_emitted_numba_equals_numpy(name, inputs, call_numpy, build_numba):
    kernel = spec.load(name)
    call = build_numba(kernel)
    for size in SIZES:
        expected, actual = both(kernel, size, inputs, call_numpy, call)
        for array in kernel.arrays:  # LLVM may contract a product and a sum, nothing else
            np.testing.assert_allclose(actual[array], expected[array], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", ["tsvc_2_s311", "tsvc_2_s115", "wf_triangular"])
def test_emitted_c_in_single_precision(name, inputs, call_numpy, build_c):
    kernel = spec.load(name)
    params = dict.fromkeys(kernel.size_symbols, 65)
    expected = inputs(kernel, params, "float32")
    actual = copied(expected)
    call_numpy(kernel, expected, params)
    build_c(kernel, "float32")(actual, params)
    for array in kernel.arrays:
        assert actual[array].dtype == np.float32
        np.testing.assert_array_equal(actual[array], expected[array], strict=True)


def test_formulas_of_the_eight_kernels(inputs, call_numpy):
    """The references against whole-array NumPy written from the formulas alone."""

    def run(name, size):
        kernel = spec.load(name)
        params = dict.fromkeys(kernel.size_symbols, size)
        before = inputs(kernel, params)
        after = copied(before)
        call_numpy(kernel, after, params)
        return before, after

    b, a = run("tsvc_2_vtvtv", 50)
    np.testing.assert_array_equal(a["a"], b["a"] * b["b"] * b["c"])
    b, a = run("tsvc_2_s311", 50)
    np.testing.assert_allclose(a["sum_out"][0], np.sum(b["a"]), rtol=1e-12)
    np.testing.assert_array_equal(a["sum_out"][1:], b["sum_out"][1:])
    b, a = run("ext_war_unit", 50)
    np.testing.assert_array_equal(a["a"], np.append(b["a"][1:] + b["b"][:-1], b["a"][-1]))
    b, a = run("argmax_with_index", 50)
    assert (a["out_index"][0], a["out_value"][0]) == (np.argmax(b["a"]), np.max(b["a"]))
    b, a = run("fuse_diamond", 50)
    np.testing.assert_array_equal(a["out"], (b["a"] ** 2 + 1) * (b["a"] ** 2 - 1))
    b, a = run("tsvc_2_s231", 30)
    np.testing.assert_array_equal(a["aa"], np.cumsum(np.vstack([b["aa"][:1], b["bb"][1:]]), axis=0))
    b, a = run("tsvc_2_s115", 30)
    system = np.eye(30) + np.triu(b["aa"], 1).T  # a[i] + sum over j < i of aa[j, i] a[j] is the old a[i]
    np.testing.assert_allclose(a["a"], np.linalg.solve(system, b["a"]), rtol=1e-10)


def test_the_wavefront_by_antidiagonals(inputs, call_numpy):
    kernel = spec.load("wf_triangular")
    grid = inputs(kernel, {"LEN_2D": 20})["a"]
    actual = {"a": grid.copy()}
    call_numpy(kernel, actual, {"LEN_2D": 20})
    for level in range(2, 39):
        i = np.arange(max(1, level - 19), level // 2 + 1)
        j = level - i
        grid[i, j] += 0.5 * (grid[i - 1, j] + grid[i, j - 1])
    np.testing.assert_array_equal(actual["a"], grid)


def test_argmax_takes_the_first_of_equals(build_c, build_numba):
    kernel = spec.load("argmax_with_index")
    for build in (build_c, build_numba):
        arrays = {"a": np.array([1.0, 5.0, 2.0, 5.0]), "out_value": np.zeros(1)}
        arrays["out_index"] = np.full(1, -1)
        build(kernel)(arrays, {"LEN_1D": 4})
        assert (arrays["out_value"][0], arrays["out_index"][0]) == (5.0, 1)
