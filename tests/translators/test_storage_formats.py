"""float16, bfloat16 and float8: loads widen exactly, stores round as ml_dtypes does, in every language."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.corpus.datatypes import numpy_dtype

LANGUAGES = ("c", "cpp", "fortran", "numba")
FORMATS = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2")
WIDENS = """
def probe(x, y, N):
    for i in range(N):
        y[i] = x[i]
"""


def edges(dtype) -> np.ndarray:
    """Every finite value of an eight-bit format, the halves between neighbours, and what lies beyond."""
    bits = np.dtype(f"uint{8 * dtype.itemsize}")
    known = np.arange(2 ** (8 * dtype.itemsize), dtype=np.uint64).astype(bits).view(dtype).astype(np.float32)
    known = np.sort(known[np.isfinite(known)])
    halves = (known[1:].astype(np.float64) + known[:-1]) / 2
    near = np.concatenate([halves, known * (1 + 2.0**-20), known * (1 - 2.0**-20)]).astype(np.float32)
    top = known[-1].astype(np.float64)
    far = np.array([top * f for f in (1.01, 1.03, 1.0356, 1.04, 1.07, 1.2, 3.0)] + [1e30, np.inf, np.nan])
    return np.concatenate([known, near, far, -far]).astype(np.float32)


def same_bits(actual, expected):
    """Equal bit for bit, any NaN for a NaN; zeros may lose their sign under the flags in use."""
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", FORMATS)
def test_conversions_are_those_of_ml_dtypes(name, language, make_kernel, build):
    dtype = numpy_dtype(name)
    values = edges(dtype)
    with np.errstate(all="ignore"):
        rounded = values.astype(dtype)
    arrays = {"x": {"shape": "(N,)", "dtype": "float32"}, "y": {"shape": "(N,)", "dtype": name}}
    kernel = make_kernel(WIDENS, arrays, ["y"])
    given = {"x": values, "y": np.zeros(len(values), dtype)}
    build(kernel, language)(given, {"N": len(values)})
    same_bits(given["y"], rounded)
    arrays = {"x": {"shape": "(N,)", "dtype": name}, "y": {"shape": "(N,)", "dtype": "float32"}}
    kernel = make_kernel(WIDENS.replace("probe", "widen"), arrays, ["y"], name="widen")
    given = {"x": rounded, "y": np.zeros(len(values), np.float32)}
    build(kernel, language)(given, {"N": len(values)})
    same_bits(given["y"], rounded.astype(np.float32))


SCALED = """
def probe(x, y, out, scale, N):
    for i in range(N):
        out[i] = scale * x[i] + y[i]
"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", FORMATS)
def test_arithmetic_is_in_single_precision(name, language, make_kernel, build):
    dtype = numpy_dtype(name)
    rng = np.random.default_rng(3)
    x, y = (rng.normal(0, 2, 257).astype(dtype) for _ in range(2))
    kernel = make_kernel(
        SCALED,
        {},
        ["out"],
        init={"arrays": dict.fromkeys(("x", "y", "out"), "(N,)"), "scalars": {"scale": 1.5}},
    )
    given = {"x": x, "y": y, "out": np.zeros(257, dtype)}
    build(kernel, language, name)(given, {"N": 257})
    expected = (np.float32(1.5) * x.astype(np.float32) + y.astype(np.float32)).astype(dtype)
    same_bits(given["out"], expected)


@pytest.mark.parametrize("language", LANGUAGES)
def test_int4_is_a_number_a_byte(language, make_kernel, build):
    kernel = make_kernel(
        WIDENS,
        {"x": {"shape": "(N,)", "dtype": "int4"}, "y": {"shape": "(N,)", "dtype": "int4"}},
        ["y"],
    )
    given = {"x": np.arange(-8, 8, dtype=np.int8), "y": np.zeros(16, np.int8)}
    build(kernel, language)(given, {"N": 16})
    np.testing.assert_array_equal(given["y"], np.arange(-8, 8))
