"""The comparison of an output with the oracle's: one fused pass in native code, no temporaries."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import native_helpers
from hpcagent_bench.corpus.bands import Tolerance, Ungradeable

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """The outcome for one output array. Errors are over all elements; infinite where one is not a number.

    ``first_bad`` is a flat index. ``detail`` names output, index and produced value, never the reference's.
    For the judge's own log: the absolute tolerance used, the reference's largest magnitude, and how many
    terms an element was taken to gather, by which rule.
    """

    ok: bool
    max_rel_error: float
    max_abs_error: float
    bad: int
    first_bad: int | None
    detail: str
    atol_used: float = 0.0
    norm: float = 0.0
    length: int = 1
    rule: str = ""


def compare(actual: Array, expected: Array, tol: Tolerance, *, threads: int, name: str) -> Comparison:
    """Compare an output with the reference's: same type, shape and element type, every element in the band.

    Integers and booleans must agree to the bit, whatever the tolerance. One pass with the plain band; a
    second with the reassociation floor only when the first found a miss. Raises Ungradeable when there is
    nothing to compare.
    """
    if expected.size == 0:
        raise Ungradeable(f"output '{name}' has no elements: nothing can be compared")
    if type(actual) is not np.ndarray:
        return _refused(f"{name}: a {type(actual).__name__} where an array is expected")
    if actual.dtype != expected.dtype:
        return _refused(f"{name}: element type {actual.dtype} where {expected.dtype} is expected")
    if actual.shape != expected.shape:
        return _refused(f"{name}: shape {actual.shape} where {expected.shape} is expected")
    produced, wanted = np.ascontiguousarray(actual).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    exact = expected.dtype.kind in "iub"
    found = _pass(produced, wanted, tol.rtol, tol.atol, threads)
    used = 0.0 if exact else tol.atol
    if found.bad and not exact and tol.effective_atol(found.norm) > tol.atol:
        used = tol.effective_atol(found.norm)
        found = _pass(produced, wanted, tol.rtol, used, threads)
    largest, relative = found.max_abs, found.max_rel
    if exact and found.bad:
        largest, relative = _integer_errors(produced, wanted)
    first = int(found.first_bad) if found.bad else None
    return Comparison(
        ok=found.bad == 0,
        max_rel_error=math.inf if math.isinf(largest) else float(relative),
        max_abs_error=float(largest),
        bad=int(found.bad),
        first_bad=first,
        detail="" if first is None else _detail(name, expected.shape, first, produced[first], found.bad),
        atol_used=used,
        norm=float(found.norm),
        length=tol.length,
        rule=tol.rule,
    )


def _refused(detail: str) -> Comparison:
    return Comparison(False, math.inf, math.inf, 0, None, detail)


def _detail(name: str, shape: tuple[int, ...], first: int, value: Any, bad: int) -> str:
    index = ", ".join(str(int(i)) for i in np.unravel_index(first, shape))
    count = math.prod(shape)
    return f"{name}[{index}] = {value.item()!r} is wrong; {bad} of {count} elements differ"


def _integer_errors(produced: Array, wanted: Array) -> tuple[float, float]:
    """Largest |a - b| and |a - b| / |b| of unequal integers or booleans."""
    unlike = produced != wanted
    absolute = _distance(produced[unlike], wanted[unlike])
    sizes = np.abs(wanted[unlike].astype(np.float64))
    relative = np.divide(absolute, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return float(absolute.max(initial=0.0)), float(relative.max(initial=0.0))


def _distance(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|a - b| of integers: taken modulo 2^bits between larger and smaller, so it cannot overflow."""
    unsigned = f"u{a.dtype.itemsize}"
    forward, backward = a.view(unsigned) - b.view(unsigned), b.view(unsigned) - a.view(unsigned)
    magnitude: npt.NDArray[np.float64] = np.where(a > b, forward, backward).astype(np.float64)
    return magnitude


def _pass(
    produced: Array, wanted: Array, rtol: float, atol: float, threads: int
) -> native_helpers.CompareResult:
    result = native_helpers.CompareResult()
    kind, meaning = _kind(produced.dtype)
    native_helpers.library().compare_arrays(
        native_helpers.COMPARE_KINDS.index(kind),
        produced.ctypes.data,
        wanted.ctypes.data,
        produced.size,
        rtol,
        atol,
        None if meaning is None else meaning.ctypes.data,
        threads,
        ctypes.byref(result),
    )
    return result


@cache
def _kind(dtype: np.dtype[Any]) -> tuple[str, npt.NDArray[np.float32] | None]:
    """How the helper reads an element type, and for a narrow format what each of its bit patterns means."""
    bits = 8 * dtype.itemsize
    if dtype.kind in "iub":
        return f"b{bits}", None
    if dtype.kind == "c" or bits >= 32:
        return f"{'c' if dtype.kind == 'c' else 'f'}{bits}", None
    patterns = np.arange(2**bits, dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        return f"t{bits}", patterns.view(dtype).astype(np.float32)
