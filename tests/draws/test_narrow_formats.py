"""Draws and comparison in the formats that ml_dtypes brings, and in half precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcagent_bench.corpus import datatypes, draw_values, fuzz, precision
from hpcagent_bench.corpus.precision import Tolerance
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant, hidden

Maker = Callable[..., Kernel]
TYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38, "float8_e4m3": 448.0, "float8_e5m2": 57344.0}


def draw(kernel: Kernel, datatype: str, variant: Variant | None = None) -> npt.NDArray[Any]:
    x: npt.NDArray[Any] = np.empty(20_000, TYPES[datatype])
    fuzz.fill(
        kernel, {"x": x}, {"N": x.size, "M": 5}, value_seed=1, structural_seed=2, threads=2, variant=variant
    )
    return x


@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("variant", [None, *hidden.HELD_OUT], ids=lambda v: v.label if v else "declared")
def test_every_distribution_stays_finite_and_varied(
    make_kernel: Maker, datatype: str, variant: Variant | None
) -> None:
    values = draw(make_kernel(x="(N,)"), datatype, variant).astype(np.float64)
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= LARGEST[datatype]
    assert np.unique(values).size > 20
    if variant is None and datatype != "float8_e4m3":
        assert 950 < values.max() <= 1024  # a thousand, as the format rounds it
    if variant is None and datatype == "float8_e4m3":
        assert 350 < values.max() <= 400  # the safe magnitude


@pytest.mark.parametrize("datatype", TYPES)
def test_a_narrow_draw_is_the_rounded_single_one(make_kernel: Maker, datatype: str) -> None:
    kernel = make_kernel(x="{shape: N, domain: [-2, 2]}")
    single = np.empty(20_000, np.float32)
    fuzz.fill(kernel, {"x": single}, {"N": 20_000, "M": 5}, value_seed=1, structural_seed=2, threads=1)
    assert np.array_equal(draw(kernel, datatype), single.astype(TYPES[datatype]))


@pytest.mark.parametrize("datatype", TYPES)
def test_rounding_agrees_with_ml_dtypes_everywhere(datatype: str) -> None:
    """Every number of the format, the middles between neighbours, and a step to either side of those."""
    dtype = np.dtype(TYPES[datatype])
    numbers = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype).astype(np.float32)
    exact = np.sort(numbers[np.isfinite(numbers)])
    middles = (exact[:-1] / 2 + exact[1:] / 2).astype(np.float32)
    sides = [np.nextafter(middles, np.float32(end), dtype=np.float32) for end in (-np.inf, np.inf)]
    single = np.concatenate([exact, middles, *sides])
    rounded = np.empty(single.size, dtype)
    draw_values._narrow(single, rounded, datatype, 2)
    assert rounded.tobytes() == single.astype(dtype).tobytes()


@pytest.mark.parametrize("datatype", TYPES)
def test_a_strict_domain_has_no_zero(make_kernel: Maker, datatype: str) -> None:
    tiny = Variant("tiny", "normal", 2.0**-9)  # rounds to zero in eight bits unless it is kept away
    for domain, sign in (("positive", 1), ("negative", -1)):
        x = draw(make_kernel(x=f"{{shape: N, domain: {domain}}}"), datatype, tiny)
        assert (sign * x.astype(np.float64) > 0).all()


@pytest.mark.parametrize("datatype", TYPES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_comparison_agrees_with_isclose(datatype: str, data: st.DataObject) -> None:
    limits = precision.band(datatype)
    bits = 8 * datatypes.numpy_dtype(datatype).itemsize
    count = data.draw(st.integers(1, 40))
    patterns = [
        data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=count, max_size=count)) for _ in "ae"
    ]
    a, e = (np.array(p, f"u{bits // 8}").view(TYPES[datatype]) for p in patterns)
    near = data.draw(st.booleans())
    with np.errstate(invalid="ignore"):
        a = (e.astype(np.float32) * np.float32(1.05)).astype(TYPES[datatype]) if near else a
        wide = a.astype(np.float64), e.astype(np.float64)
        close = np.isclose(*wide, limits.rtol, limits.atol, equal_nan=True)
    found = precision.compare(
        a, e, Tolerance(limits.rtol, limits.atol, 0.0, 1, "plain"), threads=1, name="out"
    )
    assert found.bad == (~close).sum()
    assert found.first_bad == (None if close.all() else int(np.argmin(close)))
    finite = np.abs(wide[1][np.isfinite(wide[1])])
    assert found.norm == finite.max(initial=0.0)


@pytest.mark.parametrize("datatype", TYPES)
def test_bands_are_never_below_the_epsilon(datatype: str) -> None:
    limits = precision.band(datatype)
    assert limits.atol >= float(ml_dtypes.finfo(TYPES[datatype]).eps)
    assert limits.acc_eps == float(np.finfo(np.float32).eps)
    one = np.ones(8, TYPES[datatype])
    tol = Tolerance(limits.rtol, limits.atol, limits.acc_eps, 1, "contracted")
    next_up = (np.array(one.view(f"u{one.itemsize}") + 1)).view(one.dtype)
    assert precision.compare(next_up, one, tol, threads=1, name="out").ok
    assert not precision.compare((one + one).astype(one.dtype), one, tol, threads=1, name="out").ok


def test_narrow_reductions_are_gradeable_to_the_documented_length(make_kernel: Maker) -> None:
    """(rtol / eps32)^2 terms: 7e9 in half precision, 6.3e10 in bfloat16."""
    kernel = make_kernel(a="(N,)", out="(1,)")
    for datatype, limit in (("float16", 7e9), ("bfloat16", 6.3e10)):
        most = math.floor((precision.band(datatype).rtol * 2.0**23) ** 2)
        assert most == pytest.approx(limit, rel=0.02)
        found = precision.tolerance(kernel, "out", {"N": most - 1, "M": 5}, datatype, (1,))
        assert (found.length, found.rule) == (most - 1, "contracted")
        with pytest.raises(precision.Ungradeable):
            precision.tolerance(kernel, "out", {"N": most + 1, "M": 5}, datatype, (1,))
