"""The tolerance of an output and the comparison with the oracle (scoring.md 1.2 gate 2).

An element agrees when ``|x - x_ref| <= atol_eff + rtol |x_ref|``, where ``rtol`` and ``atol`` are the
precision's band (raised by the manifest's conditioning floors) and ``atol_eff`` also covers another order of
summation: ``max(atol, eps sqrt(l) max|x_ref|)`` with ``l`` the number of terms an output element gathers.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import expressions, fuzz, native_helpers
from hpcagent_bench.corpus.spec import Kernel

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Band:
    """Relative and absolute tolerance of a format, and the epsilon of the format its sums accumulate in."""

    rtol: float
    atol: float
    acc_eps: float


_EPS64 = 2.0**-52
_EPS32 = 2.0**-23
TOLERANCE_MATRIX: dict[str, Band] = {
    "float64": Band(1e-9, 1e-11, _EPS64),
    "float32": Band(1e-3, 1e-5, _EPS32),
    "float16": Band(1e-2, 1e-3, _EPS32),
    "bfloat16": Band(3e-2, 1e-2, _EPS32),
    "float8_e4m3": Band(1e-1, 0.125, _EPS32),
    "float8_e5m2": Band(2e-1, 0.25, _EPS32),
}
_PARTS = {"complex128": "float64", "complex64": "float32"}


class Ungradeable(Exception):
    """The judge cannot tell right from wrong here: a fault of the judge's side, never of a submission."""


@dataclass(frozen=True)
class Tolerance:
    """What one output array may deviate. ``length`` is l, ``rule`` says how it was found.

    ``atol`` 0 switches the reassociation floor off.
    """

    rtol: float
    atol: float
    acc_eps: float
    length: int
    rule: str

    def effective_atol(self, norm: float) -> float:
        """``atol`` raised by the reassociation floor for a reference of largest magnitude ``norm``."""
        if self.atol == 0.0:
            return 0.0
        return max(self.atol, self.acc_eps * math.sqrt(self.length) * norm)


EXACT = Tolerance(rtol=0.0, atol=0.0, acc_eps=0.0, length=1, rule="exact")


@dataclass(frozen=True)
class Comparison:
    """The outcome for one output array. Errors are over all elements; infinite where one is not a number.

    ``first_bad`` is a flat index. ``detail`` names output, index and produced value, never the reference's.
    """

    ok: bool
    max_rel_error: float
    max_abs_error: float
    bad: int
    first_bad: int | None
    detail: str


def band(datatype: str) -> Band:
    """The band of a format; one without an entry follows from its epsilon."""
    name = _PARTS.get(datatype, datatype)
    if name in TOLERANCE_MATRIX:
        return TOLERANCE_MATRIX[name]
    eps = float(np.finfo(np.dtype(name)).eps)
    rtol = min(max(math.sqrt(eps), 1e-11), 0.25)
    return Band(rtol, max(rtol / 100.0, eps), eps)


def tolerance(
    kernel: Kernel,
    output: str,
    params: Mapping[str, int | float],
    datatype: str,
    written_extents: tuple[int, ...] | None,
) -> Tolerance:
    """The tolerance of ``output``; integers and booleans are exact.

    ``written_extents`` is what write_probe found; None takes the declared shape. Raises Ungradeable when the
    reassociation floor alone would reach the relative tolerance.
    """
    dtype = kernel.dtypes(datatype)[output]
    if np.dtype(dtype).kind in "iub":
        return EXACT
    limits = band(dtype)
    rtol = max(limits.rtol, kernel.manifest.conditioning_rtol or 0.0)
    atol = max(limits.atol, kernel.manifest.conditioning_atol or 0.0)
    length, rule = contracted_extent(kernel, output, params, written_extents)
    if limits.acc_eps * math.sqrt(length) >= rtol:
        raise Ungradeable(
            f"{kernel.name}: output '{output}' gathers {length} terms ({rule}); in {dtype} their order alone "
            f"may move it by {limits.acc_eps * math.sqrt(length):.2g} of its size, rtol is {rtol:g}"
        )
    return Tolerance(rtol, atol, limits.acc_eps, length, rule)


def contracted_extent(
    kernel: Kernel, output: str, params: Mapping[str, int | float], written_extents: tuple[int, ...] | None
) -> tuple[int, str]:
    """How many terms an element of ``output`` gathers, and by which rule that was found.

    Per input array: the product of its shape symbols absent from the output's effective shape, where an axis
    of which one index is written counts as absent; the largest over the inputs. Shapes that cannot tell (no
    symbols, or a symbol used twice in an input and nothing absent) take the largest input's element count.
    """
    values = kernel.scalars(params)
    shapes = kernel.shapes(params)
    axes = {
        name: [expressions.symbols(a) for a in expressions.axes(d.shape)] for name, d in kernel.arrays.items()
    }
    inputs = [name for name in axes if name not in kernel.outputs] or list(axes)
    largest = max(math.prod(shapes[name]) for name in inputs)
    if not any(symbols for name in inputs for symbols in axes[name]):
        return max(largest, 1), "largest_input_no_shapes"
    extents = written_extents or shapes[output]
    kept = frozenset[str]().union(*(s for s, n in zip(axes[output], extents, strict=True) if n != 1))
    length = 1
    for name in inputs:
        absent = [symbol for symbols in axes[name] for symbol in symbols - kept]
        length = max(length, math.prod(int(values[symbol]) for symbol in absent))
    if length == 1 and any(_repeats(axes[name]) for name in inputs):
        return max(largest, 1), "largest_input_ambiguous"
    return length, "declared_shape" if written_extents is None else "contracted"


def _repeats(axes: list[frozenset[str]]) -> bool:
    """True when a symbol sizes two axes, so that its presence in the output proves nothing."""
    used = [symbol for symbols in axes for symbol in symbols]
    return len(used) != len(set(used))


def write_probe(
    kernel: Kernel,
    call: Callable[[dict[str, Array]], None],
    params: Mapping[str, int | float] | None = None,
    *,
    datatype: str = "float64",
    draws: int = 2,
    threads: int = 1,
) -> dict[str, tuple[int, ...]]:
    """How many indices of each axis of each output the reference really writes, at a small size.

    ``call`` runs the reference on the arrays in place (``params``, by default preset S with the first
    configuration). Outputs start from their drawn values, and what differs from them afterwards in any of the
    draws was written; so a canary is never an index out of range. An output that stays untouched, and one of
    integers or booleans, is given its declared shape.
    """
    chosen = {**kernel.configs[0], **kernel.presets["S"]} if params is None else dict(params)
    shapes, dtypes = kernel.shapes(chosen), kernel.dtypes(datatype)
    written = {name: np.zeros(shapes[name], np.bool_) for name in kernel.outputs}
    for seed in range(draws):
        arrays: dict[str, Array] = {name: np.empty(shape, dtypes[name]) for name, shape in shapes.items()}
        fuzz.fill(kernel, arrays, chosen, value_seed=seed, structural_seed=seed, threads=threads)
        before = {name: arrays[name].copy() for name in kernel.outputs}
        call(arrays)
        for name in kernel.outputs:
            written[name] |= arrays[name] != before[name]
    return {name: _touched(mask, dtypes[name]) for name, mask in written.items()}


def _touched(mask: npt.NDArray[np.bool_], dtype: str) -> tuple[int, ...]:
    if np.dtype(dtype).kind in "iub" or not mask.any():
        return mask.shape
    axes = range(mask.ndim)
    return tuple(int(mask.any(axis=tuple(a for a in axes if a != axis)).sum()) for axis in axes)


def compare(actual: Array, expected: Array, tol: Tolerance, *, threads: int, name: str) -> Comparison:
    """Compare an output with the reference's: same type, shape and element type, every element in the band.

    One pass with the plain band; a second with the reassociation floor only when the first found a miss.
    Raises Ungradeable when there is nothing to compare.
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
    if expected.dtype.kind in "iub":
        return _compare_exact(produced, wanted, expected.shape, name)
    found = _compare_pass(produced, wanted, tol.rtol, tol.atol, threads)
    floor = tol.effective_atol(found.norm)
    if found.bad and floor > tol.atol:
        found = _compare_pass(produced, wanted, tol.rtol, floor, threads)
    first = int(found.first_bad) if found.bad else None
    return Comparison(
        ok=found.bad == 0,
        max_rel_error=math.inf if math.isinf(found.max_abs) else float(found.max_rel),
        max_abs_error=float(found.max_abs),
        bad=int(found.bad),
        first_bad=first,
        detail="" if first is None else _detail(name, expected.shape, first, produced[first], found.bad),
    )


def _refused(detail: str) -> Comparison:
    return Comparison(False, math.inf, math.inf, 0, None, detail)


def _detail(name: str, shape: tuple[int, ...], first: int, value: Any, bad: int) -> str:
    index = ", ".join(str(int(i)) for i in np.unravel_index(first, shape))
    count = math.prod(shape)
    return f"{name}[{index}] = {value.item()!r} is wrong; {bad} of {count} elements differ"


def _compare_exact(produced: Array, wanted: Array, shape: tuple[int, ...], name: str) -> Comparison:
    """Integers and booleans, by their bytes and never through a float."""
    unlike = produced.view(f"u{produced.dtype.itemsize}") != wanted.view(f"u{wanted.dtype.itemsize}")
    bad = int(np.count_nonzero(unlike))
    if bad == 0:
        return Comparison(True, 0.0, 0.0, 0, None, "")
    first = int(np.argmax(unlike))
    absolute = _distance(produced[unlike], wanted[unlike])
    sizes = np.abs(wanted[unlike].astype(np.float64))
    relative = np.divide(absolute, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    detail = _detail(name, shape, first, produced[first], bad)
    return Comparison(False, float(relative.max()), float(absolute.max()), bad, first, detail)


def _distance(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|a - b| of integers: taken modulo 2^bits between larger and smaller, so it cannot overflow."""
    unsigned = f"u{a.dtype.itemsize}"
    forward, backward = a.view(unsigned) - b.view(unsigned), b.view(unsigned) - a.view(unsigned)
    magnitude: npt.NDArray[np.float64] = np.where(a > b, forward, backward).astype(np.float64)
    return magnitude


def _compare_pass(
    produced: Array, wanted: Array, rtol: float, atol: float, threads: int
) -> native_helpers.CompareResult:
    if produced.dtype.kind == "c":
        return _complex_pass(produced, wanted, rtol, atol)
    result = native_helpers.CompareResult()
    helpers = native_helpers.library()
    narrow = produced.dtype == np.float32
    if produced.dtype not in (np.float64, np.float32):
        produced, wanted = produced.astype(np.float64), wanted.astype(np.float64)
    function = helpers.compare_f32 if narrow else helpers.compare_f64
    function(
        produced.ctypes.data, wanted.ctypes.data, produced.size, rtol, atol, threads, ctypes.byref(result)
    )
    return result


def _complex_pass(produced: Array, wanted: Array, rtol: float, atol: float) -> native_helpers.CompareResult:
    """Complex numbers: distance and size by modulus, infinities and NaNs component by component."""
    pairs = [np.stack([x.real, x.imag]).astype(np.float64) for x in (produced, wanted)]
    with np.errstate(invalid="ignore", over="ignore"):
        same = (pairs[0] == pairs[1]) | (np.isnan(pairs[0]) & np.isnan(pairs[1]))
        apart = np.where(same, 0.0, pairs[0] - pairs[1])
        distance = np.hypot(apart[0], apart[1])
        size = np.hypot(*np.where(np.isfinite(pairs[1]), pairs[1], 0.0))
        close = np.isfinite(distance) & (distance <= atol + rtol * size)
    distance[~np.isfinite(distance)] = np.inf
    outside = ~(same.all(axis=0) | close)
    usable = np.isfinite(size)
    relative = np.divide(distance, size, out=np.zeros_like(size), where=usable & (size > 0))
    return native_helpers.CompareResult(
        bad=int(outside.sum()),
        first_bad=int(outside.argmax()) if outside.any() else -1,
        max_abs=float(distance.max()),
        max_rel=float(relative.max()),
        norm=float(size[usable].max(initial=0.0)),
    )
