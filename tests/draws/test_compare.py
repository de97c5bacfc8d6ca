"""The comparison: against numpy.isclose on random cases, and the cases a plain closeness test gets wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hpcagent_bench.corpus import precision
from hpcagent_bench.corpus.precision import EXACT, Comparison, Tolerance, Ungradeable

Array = npt.NDArray[Any]
FP64 = Tolerance(1e-9, 1e-11, 2.0**-52, 1, "contracted")


def compare(actual: Array, expected: Array, tol: Tolerance = FP64, threads: int = 1) -> Comparison:
    return precision.compare(actual, expected, tol, threads=threads, name="out")


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1 + 1e-10, 1 + 1e-8, 1e-12, 1.7e308, -1.7e308, 5e-324]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_agrees_with_isclose(dtype: Any, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    values = st.sampled_from(SPECIAL) if data.draw(st.booleans()) else st.floats(-10, 10)
    with np.errstate(over="ignore", invalid="ignore"):
        a, e = (data.draw(hnp.arrays(np.float64, count, elements=values)).astype(dtype) for _ in range(2))
        if data.draw(st.booleans()):
            a = (e * (1 + 1e-10)).astype(dtype)
        close = np.isclose(a.astype(np.float64), e.astype(np.float64), 1e-9, 1e-11, equal_nan=True)
    found = compare(a, e, Tolerance(1e-9, 1e-11, 0.0, 1, "plain"))
    assert found.ok == close.all()
    assert found.bad == (~close).sum()
    assert found.first_bad == (None if close.all() else int(np.argmin(close)))


def test_one_wrong_element_anywhere_is_found() -> None:
    rng = np.random.default_rng(3)
    expected = rng.uniform(-1000, 1000, 300_007)
    for place in (0, 1, 2047, 2048, 65535, 65536, 299_999, 300_006):
        actual = expected.copy()
        actual[place] *= 1 + 1e-6
        for threads in (1, 2, 5):
            found = compare(actual, expected, threads=threads)
            assert (found.ok, found.bad, found.first_bad) == (False, 1, place)
            assert found.max_abs_error == abs(actual[place] - expected[place])
            assert found.max_rel_error == pytest.approx(1e-6, rel=1e-6)


def test_two_dimensional_index_and_produced_value_are_named() -> None:
    expected = np.full((4, 5), 3.25)
    actual = expected.copy()
    actual[2, 3] = 7.5
    found = compare(actual, expected)
    assert found.detail == "out[2, 3] = 7.5 is wrong; 1 of 20 elements differ"
    assert "3.25" not in found.detail


@pytest.mark.parametrize("shape", [(1,), (0,), (5, 1), (1, 5), (6,), ()])
def test_shapes_never_broadcast(shape: tuple[int, ...]) -> None:
    found = compare(np.ones(shape), np.ones(5))
    assert not found.ok
    assert "shape" in found.detail


def test_types_must_be_the_declared_ones() -> None:
    class Lazy(np.ndarray[Any, Any]):
        pass

    assert "float32" in compare(np.ones(3, np.float32), np.ones(3)).detail
    assert not compare(np.ones(3).astype(">f8"), np.ones(3)).ok
    assert not compare(np.ones(3).view(Lazy), np.ones(3)).ok
    assert not compare([1.0, 1.0, 1.0], np.ones(3)).ok  # type: ignore[arg-type]


def test_nothing_to_compare_is_the_judges_fault() -> None:
    with pytest.raises(Ungradeable, match="out"):
        compare(np.empty((0, 3)), np.empty((0, 3)))


def test_nan_and_infinity() -> None:
    nan, inf = math.nan, math.inf
    assert compare(np.array([nan, inf, -inf, 1.0]), np.array([nan, inf, -inf, 1.0])).ok
    for a, e in ((nan, 1.0), (1.0, nan), (inf, -inf), (inf, 1e308), (1e308, inf), (nan, inf), (inf, nan)):
        found = compare(np.array([0.0, a]), np.array([0.0, e]))
        assert (found.ok, found.first_bad, found.max_abs_error) == (False, 1, inf)
    assert not compare(np.array([1.7e308]), np.array([-1.7e308])).ok  # the difference overflows
    assert compare(np.array([-0.0]), np.array([0.0])).ok


def test_an_infinite_reference_does_not_widen_the_floor() -> None:
    tol = Tolerance(1e-9, 1e-11, 2.0**-52, 10**12, "contracted")
    found = compare(np.array([math.inf, 1.0]), np.array([math.inf, 2.0]), tol)
    assert (found.ok, found.first_bad) == (False, 1)


def test_floor_covers_the_order_of_a_sum() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1000, 1000, 10**6)
    sequential = np.cumsum(x)
    starts = np.concatenate([[0.0], np.cumsum(x.reshape(1000, 1000).sum(axis=1))[:-1]])
    blocked = (np.cumsum(x.reshape(1000, 1000), axis=1) + starts[:, None]).ravel()
    assert compare(blocked, sequential).bad > 0
    floor = Tolerance(1e-9, 1e-11, 2.0**-52, x.size, "contracted")
    assert floor.effective_atol(2000.0) == pytest.approx(2.0**-52 * 1000 * 2000)
    assert compare(blocked, sequential, floor).ok
    assert Tolerance(1e-9, 0.0, 2.0**-52, x.size, "explicit").effective_atol(2000.0) == 0.0


def test_zero_reference_takes_the_absolute_tolerance() -> None:
    assert compare(np.array([9e-12]), np.array([0.0])).ok
    found = compare(np.array([1e-7]), np.array([0.0]))
    assert (found.ok, found.max_rel_error, found.max_abs_error) == (False, 0.0, 1e-7)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_are_exact_beyond_the_floats(dtype: str) -> None:
    expected = np.array([2**53, 2**62], dtype)
    actual = expected + np.array([1, 0], dtype)
    found = compare(actual, expected, EXACT)
    assert (found.bad, found.first_bad, found.max_abs_error) == (1, 0, 1.0)
    assert str(2**53 + 1) in found.detail
    assert compare(expected.copy(), expected, EXACT).ok


def test_integer_distance_does_not_overflow() -> None:
    low, high = np.array([-(2**63)]), np.array([2**63 - 1])
    assert compare(low, high, EXACT).max_abs_error == 2.0**64
    assert compare(high, low, EXACT).max_abs_error == 2.0**64
    assert compare(np.array([3, 250], np.uint8), np.array([250, 3], np.uint8), EXACT).max_abs_error == 247
    assert compare(np.array([True]), np.array([False]), EXACT).bad == 1


def test_complex_numbers() -> None:
    nan, inf = math.nan, math.inf
    expected = np.array([3 + 4j, complex(inf, 1), complex(nan, 2), 0j])
    assert compare(expected.copy(), expected).ok
    near = expected + np.array([3e-9j, 0, 0, 8e-12])  # |e| is 5, so 5e-9 is allowed
    assert compare(near, expected).ok
    for place, value in (
        (0, 3 + 4.00000001j),
        (1, complex(inf, 5)),
        (1, complex(-inf, 1)),
        (2, complex(2, nan)),
    ):
        actual = expected.copy()
        actual[place] = value
        assert compare(actual, expected).first_bad == place


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_complex_agrees_with_numpy(dtype: Any, data: st.DataObject) -> None:
    """By modulus where both are finite; NaN and infinity must be met by their like in the same component."""
    count = data.draw(st.integers(1, 30))
    values = st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0, 1 + 1e-10, 1 + 1e-8, 1e200])
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [data.draw(hnp.arrays(np.float64, (count, 2), elements=values)) for _ in range(2)]
        if data.draw(st.booleans()):
            parts[0] = parts[1] * (1 + 1e-10)
        a, e = ((p[:, 0] + 0.0).astype(dtype) for p in parts)
        for array, part in ((a, parts[0]), (e, parts[1])):
            array.real, array.imag = part[:, 0], part[:, 1]
        same = [(x == y) | (np.isnan(x) & np.isnan(y)) for x, y in ((a.real, e.real), (a.imag, e.imag))]
        apart = [
            np.where(s, 0, np.abs(np.float64(x) - y))
            for s, x, y in zip(same, (a.real, a.imag), (e.real, e.imag), strict=True)
        ]
        size = np.hypot(*(np.where(np.isfinite(p), p, 0).astype(np.float64) for p in (e.real, e.imag)))
        good = (same[0] & same[1]) | (
            np.isfinite(np.hypot(*apart)) & (np.hypot(*apart) <= 1e-11 + 1e-9 * size)
        )
    found = compare(a, e, Tolerance(1e-9, 1e-11, 0.0, 1, "plain"))
    assert found.bad == (~good).sum()
    assert found.first_bad == (None if good.all() else int(np.argmin(good)))
    assert found.norm == pytest.approx(size[np.isfinite(size)].max(initial=0.0), rel=1e-15)


def test_the_floors_derivation_stays_with_the_result() -> None:
    expected = np.array([1000.0, 1e-3])
    tol = Tolerance(1e-9, 1e-11, 2.0**-52, 10**6, "contracted")
    near = expected + np.array([0.0, 1e-10])  # beyond the plain band, within eps * 1000 * 1000 = 2.2e-10
    found = compare(near, expected, tol)
    assert (found.ok, found.rule, found.length, found.norm) == (True, "contracted", 10**6, 1000.0)
    assert found.atol_used == pytest.approx(2.0**-52 * 1e6)
    assert compare(expected.copy(), expected, tol).atol_used == 1e-11
    exact = Tolerance(0.0, 0.0, 2.0**-52, 10**6, "explicit")  # atol 0 means exact: no floor
    assert not compare(near, expected, exact).ok


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_one_wrong_integer_anywhere_is_found(dtype: str) -> None:
    expected = np.random.default_rng(5).integers(0, 2, 200_003).astype(dtype)
    for place in (0, 65_535, 65_536, 200_002):
        actual = expected.copy()
        actual[place] = 1 - actual[place] if dtype != "bool" else not actual[place]
        for threads in (1, 3):
            found = compare(actual, expected, EXACT, threads)
            assert (found.bad, found.first_bad, found.max_abs_error) == (1, place, 1.0)


def test_inputs_are_only_read() -> None:
    actual, expected = np.arange(9.0), np.arange(9.0)
    actual.flags.writeable = expected.flags.writeable = False
    assert compare(actual, expected).ok
    assert compare(np.arange(18.0)[::2], np.arange(0.0, 18.0, 2.0)).ok
