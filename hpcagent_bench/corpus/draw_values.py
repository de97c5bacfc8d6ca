"""Draws of real and complex arrays, at memory speed and the same on every machine.

What is drawn is defined by ``support.distributions``; this module maps a declaration, a format and a held-out
variant to one call of the native helpers, and lays structure over square matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import datatypes, native_helpers
from hpcagent_bench.support import distributions
from hpcagent_bench.support.distributions import Structure, Variant

Array = npt.NDArray[Any]
Interval = tuple[float, float]
_CHUNK = 1 << 20  # elements of a narrow format converted at a time
_FOLDS = {"nonneg": 1, "positive": 2, "nonpos": 3, "negative": 4}  # native/draws.c
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Law:
    """What an array's elements are drawn from: a distribution, its factor, its interval or sign domain."""

    dist: str
    scale: float
    interval: Interval | None
    sign: str | None


def law(
    dist: str | None,
    domain: str | None,
    interval: Interval | None,
    variant: Variant | None,
    allowed: list[str],
) -> Law:
    """The law of an array: as declared, or as a held-out variant changes it.

    A variant changes the distribution of arrays without structure and without an interval, where the kernel
    can take it (``allowed``), and scales them; structural ones keep theirs and are scaled; an interval stays.
    """
    chosen, scale = dist or "uniform", 1.0
    if variant is not None and interval is None:
        scale = variant.scale
        if chosen not in distributions.STRUCTURAL and variant.dist in allowed:
            chosen = variant.dist
    return Law(chosen, scale, interval, domain)


def fill(array: Array, rule: Law, key: int, threads: int) -> None:
    """Fill a C-contiguous array of reals or complex numbers (filled as real and imaginary parts)."""
    if rule.dist in distributions.STRUCTURAL:
        _fill_structured(array, distributions.STRUCTURAL[rule.dist], rule.scale, key, threads)
        return
    parts = array.reshape(-1)
    if array.dtype.kind == "c":
        parts = parts.view(array.real.dtype)
    _fill_parts(parts, rule, key, threads)


def _fill_parts(parts: Array, rule: Law, key: int, threads: int) -> None:
    """Formats the helpers know at once; narrower ones through single precision, a chunk after the other."""
    if parts.dtype in (np.float64, np.float32):
        _draw(parts, rule, key, threads, datatypes.dtype_name(parts.dtype))
        return
    single = np.empty(min(parts.size, _CHUNK), np.float32)
    name = datatypes.dtype_name(parts.dtype)
    for chunk in range(-(-parts.size // _CHUNK)):
        target = parts[chunk * _CHUNK : (chunk + 1) * _CHUNK]
        part = single[: target.size]
        _draw(part, rule, (key + chunk * _GOLDEN) % 2**64, threads, name)
        if rule.sign in (
            "positive",
            "negative",
        ):  # single precision reaches below the format's smallest number
            least = datatypes.smallest_normal(name)
            part[np.abs(part) < least] = least if rule.sign == "positive" else -least
        _narrow(part, target, name, threads)


def _narrow(single: Array, target: Array, format_name: str, threads: int) -> None:
    """Round single precision, all within the format's range, into ``target``."""
    bias = 1 - round(math.log2(datatypes.smallest_normal(format_name)))
    mantissa, bits = datatypes.digits(format_name) - 1, 8 * target.dtype.itemsize
    place = (single.ctypes.data, target.ctypes.data, target.size)
    native_helpers.library().narrow_f32(*place, bits, mantissa, bias, threads)


def _draw(parts: Array, rule: Law, key: int, threads: int, format_name: str) -> None:
    helpers = native_helpers.library()
    suffix = "f64" if parts.dtype == np.float64 else "f32"
    limit = distributions.SAFE_MAGNITUDE.get(format_name, float(np.finfo(parts.dtype).max))
    fold = _FOLDS.get(rule.sign or "", 0)
    place = (parts.ctypes.data, parts.size, key)
    if rule.dist == "uniform":
        most = min(distributions.UNIFORM_LIMIT * rule.scale, limit)
        lo, hi = rule.interval or (-most, most)
        getattr(helpers, f"draw_uniform_{suffix}")(*place, lo, hi, fold, threads)
        return
    factor, shift, lo, hi = rule.scale, 0.0, -limit, limit
    if rule.interval is not None:
        lo, hi = rule.interval
        lognormal = rule.dist == "lognormal"
        least, most = distributions.LOGNORMAL_RANGE if lognormal else distributions.NORMAL_RANGE
        factor = (hi - lo) / (most - least)
        shift = lo - least * factor
    kind = int(rule.dist == "lognormal")
    getattr(helpers, f"draw_normal_{suffix}")(*place, kind, factor, shift, lo, hi, fold, threads)


def _fill_structured(array: Array, structure: Structure, scale: float, key: int, threads: int) -> None:
    """Square matrices on the last two axes (support.distributions says which), each scaled."""
    if array.size == 0:
        return
    order = array.shape[-1]
    off = structure.off * scale / order
    _fill_parts(array.reshape(-1), Law("uniform", 1.0, (-off, off), None), key, threads)
    unit = np.empty(array.size // order, np.float64)
    _fill_parts(unit, Law("uniform", 1.0, (-1.0, 1.0), None), key ^ _GOLDEN, threads)
    matrices = array.reshape(-1, order * order)
    diagonal = scale * (np.copysign(structure.centre, unit) + structure.spread * unit)
    matrices[:, :: order + 1] = diagonal.reshape(-1, order)
    if structure.near_singular and order > 1:
        small = 2.0 ** math.ceil(math.log2(datatypes.epsilon(datatypes.dtype_name(array.dtype))) / 2)
        first, last = (matrices[:, rows].astype(np.float64) for rows in (slice(order), slice(-order, None)))
        matrices[:, -order:] = first + small * last
