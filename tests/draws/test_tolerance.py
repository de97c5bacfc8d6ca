"""Bands, the contracted extents, the guard, the write probe, and answers that must not pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hpcagent_bench.corpus import fuzz, precision, spec
from hpcagent_bench.corpus.precision import Ungradeable
from hpcagent_bench.corpus.spec import Kernel

Arrays = dict[str, npt.NDArray[Any]]
KERNELS = sorted(spec.discover())


def run_numpy(kernel: Kernel, arrays: Arrays, params: dict[str, Any]) -> None:
    values = {**kernel.scalars(params), **arrays}
    kernel.load_numpy()(*(values[name] for name in kernel.arg_order))


def probe(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    params: dict[str, Any] = {**kernel.configs[0], **kernel.presets["S"]}
    return precision.write_probe(kernel, lambda arrays: run_numpy(kernel, arrays, params))


@pytest.mark.parametrize(
    ("datatype", "rtol", "atol"),
    [
        *(("float64", 1e-9, 1e-11), ("float32", 1e-3, 1e-5), ("float16", 1e-2, 1e-3)),
        *(("bfloat16", 3e-2, 1e-2), ("float8_e4m3", 1e-1, 0.125), ("float8_e5m2", 2e-1, 0.25)),
        ("complex64", 1e-3, 1e-5),
    ],
)
def test_bands(datatype: str, rtol: float, atol: float) -> None:
    found = precision.band(datatype)
    assert (found.rtol, found.atol) == (rtol, atol)
    assert found.acc_eps == (np.finfo(np.float64).eps if datatype == "float64" else np.finfo(np.float32).eps)
    assert found.atol >= found.acc_eps


@pytest.mark.parametrize(
    ("datatype", "threshold"), [("float64", 2e13), ("float32", 7.0e7), ("float16", 7e9), ("bfloat16", 6.3e10)]
)
def test_guard_thresholds(datatype: str, threshold: float) -> None:
    found = precision.band(datatype)
    assert (found.rtol / found.acc_eps) ** 2 == pytest.approx(threshold, rel=0.02)


def test_guard_refuses_a_long_single_precision_sum() -> None:
    kernel = spec.load("tsvc_2_s311")
    limit = math.floor((1e-3 / 2.0**-23) ** 2)
    assert precision.tolerance(kernel, "sum_out", {"LEN_1D": limit - 1}, "float32", (1,)).length == limit - 1
    with pytest.raises(Ungradeable, match=r"sum_out.*float32"):
        precision.tolerance(kernel, "sum_out", {"LEN_1D": limit + 1}, "float32", (1,))
    assert precision.tolerance(kernel, "sum_out", {"LEN_1D": 260382392}, "float64", (1,)).length == 260382392


@pytest.mark.parametrize("declared", ["none", "(1,)"])
def test_a_sum_without_a_probe_keeps_its_declared_shape(declared: str) -> None:
    kernel = spec.load("tsvc_2_s311")
    extents = None if declared == "none" else (1,)
    found = precision.tolerance(kernel, "sum_out", {"LEN_1D": 4096}, "float64", extents)
    expected = (1, "declared_shape") if extents is None else (4096, "contracted")
    assert (found.length, found.rule) == expected


def test_contracted_extents_of_made_up_kernels(make_kernel: Callable[..., Kernel]) -> None:
    params = {"N": 30, "M": 7}
    cases = [
        ({"a": "(N, M)", "b": "(M, N)", "out": "(N, N)"}, 7, "contracted"),  # matrix product over M
        ({"a": "(N, M)", "out": "(N,)"}, 7, "contracted"),  # row sum
        ({"a": "(N, M)", "out": "(1,)"}, 210, "contracted"),  # sum of all
        ({"a": "(N,)", "b": "(N,)", "out": "(N,)"}, 1, "contracted"),  # element by element
        ({"a": "(N, N)", "out": "(N,)"}, 900, "largest_input_ambiguous"),
        ({"a": "(12, 2)", "out": "(3,)"}, 24, "largest_input_no_shapes"),
    ]
    for arrays, length, rule in cases:
        kernel = make_kernel(**arrays)
        shape = kernel.shapes(params)["out"]
        assert precision.contracted_extent(kernel, "out", params, shape) == (length, rule)


def test_integer_outputs_are_exact() -> None:
    kernel = spec.load("argmax_with_index")
    assert precision.tolerance(kernel, "out_index", kernel.presets["XL"], "float64", (1,)) == precision.EXACT


@pytest.mark.parametrize("name", KERNELS)
def test_conditioning_only_raises(name: str) -> None:
    kernel = spec.load(name)
    for output in kernel.outputs:
        if np.dtype(kernel.dtypes()[output]).kind == "f":
            found = precision.tolerance(kernel, output, kernel.presets["S"], "float64", None)
            assert found.rtol == max(1e-9, kernel.manifest.conditioning_rtol or 0)
            assert found.atol == max(1e-11, kernel.manifest.conditioning_atol or 0)


def test_write_probe_sees_what_is_written() -> None:
    assert probe(spec.load("tsvc_2_s311")) == {"sum_out": (1,)}
    assert probe(spec.load("ext_war_unit")) == {"a": (511,)}
    assert probe(spec.load("argmax_with_index")) == {"out_index": (1,), "out_value": (1,)}
    assert probe(spec.load("wf_triangular")) == {"a": (63, 63)}


@pytest.mark.parametrize("name", ["argmax_with_index", "ext_war_unit", "tsvc_2_s115", "tsvc_2_s311"])
def test_idle_answers_do_not_pass(name: str) -> None:
    kernel = spec.load(name)
    params: dict[str, Any] = {**kernel.configs[0], **kernel.presets["S"]}
    types = kernel.dtypes()
    drawn: Arrays = {n: np.empty(s, types[n]) for n, s in kernel.shapes(params).items()}
    fuzz.fill(kernel, drawn, params, value_seed=5, structural_seed=6, threads=2)
    right = {n: a.copy() for n, a in drawn.items()}
    run_numpy(kernel, right, params)
    extents = probe(kernel)
    for output in kernel.outputs:
        tol = precision.tolerance(kernel, output, params, "float64", extents[output])
        wanted = right[output]
        mean = np.full_like(wanted, wanted.mean()) if wanted.size > 1 else wanted + 1
        for answer in (np.zeros_like(wanted), drawn[output], mean):
            assert not precision.compare(answer, wanted, tol, threads=1, name=output).ok
        assert precision.compare(wanted.copy(), wanted, tol, threads=1, name=output).ok
