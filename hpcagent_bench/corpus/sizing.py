"""Sizes of the timed inputs: the rung a study runs at, and the draws around it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hpcagent_bench.config import Sizes
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError, did_you_mean


def rung_name(sizes: Sizes) -> str:
    """The name recorded on every grade as its preset: ``XL``, or that of the bytes-bounded group."""
    return "XL" if sizes.bytes is None else sizes.name


def rung(kernel: Kernel, sizes: Sizes, datatype: str = "float64") -> dict[str, int]:
    """Every size symbol of the timed rung.

    XL, or XL scaled down with its aspect kept so that the arrays of one input come as near below
    ``sizes.bytes`` as integers allow; never above XL. Symbols equal in all presets stay. A bound too small
    for the smallest input is a UserError.
    """
    full = kernel.presets["XL"]
    if sizes.bytes is None or kernel.input_bytes(full, datatype) <= sizes.bytes:
        return full
    longest = max((full[symbol] for symbol in kernel.size_symbols), default=1)
    low, high = 0, longest  # largest step of the longest size that fits lies in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        fits = kernel.input_bytes(_scaled(kernel, middle, longest), datatype) <= sizes.bytes
        low, high = (middle, high) if fits else (low, middle)
    if low == 0:
        least = kernel.input_bytes(_scaled(kernel, 1, longest), datatype)
        raise UserError(
            f"sizes {sizes.name}: bytes = {sizes.bytes} is too small for {kernel.name}",
            f"its smallest input takes {least} bytes",
        )
    return _scaled(kernel, low, longest)


def _scaled(kernel: Kernel, step: int, longest: int) -> dict[str, int]:
    full = kernel.presets["XL"]
    free = {symbol: max(1, full[symbol] * step // longest) for symbol in kernel.size_symbols}
    return {**full, **free}


@dataclass(frozen=True)
class _Class:
    """The sizes ``offset + k * period`` for an offset in ``offsets`` (all of them below ``period``)."""

    period: int
    offsets: tuple[int, ...]


_CLASSES = {
    "aligned": _Class(64, (0,)),
    "odd": _Class(2, (1,)),
    "odd8": _Class(16, (8,)),
    "even": _Class(8, (2, 4, 6)),
}
"""A multiple of 64; odd; 8 times an odd number; even and no multiple of 8. No size is in two classes."""


def draw_sizes(
    kernel: Kernel,
    rung: Mapping[str, int],
    size_class: str,
    rng: np.random.Generator,
    lo: float,
    hi: float,
) -> dict[str, int]:
    """One draw: every free size uniform in [lo, hi] x rung, then moved to the nearest member of its class.

    The member lies inside the interval when there is one, else it is the nearest positive one. Symbols that
    are not free keep the rung's value. One number is taken from ``rng`` per free size, in sorted order.
    """
    if size_class not in _CLASSES:
        raise UserError(f"size class '{size_class}' does not exist", did_you_mean(size_class, _CLASSES))
    chosen = _CLASSES[size_class]
    drawn = dict(rung)
    for symbol in kernel.size_symbols:
        low, high = max(1, math.ceil(lo * rung[symbol])), max(1, math.floor(hi * rung[symbol]))
        value = int(rng.integers(min(low, high), high, endpoint=True))
        drawn[symbol] = _move(value, chosen, low, high)
    return drawn


def _move(value: int, chosen: _Class, low: int, high: int) -> int:
    base = value - value % chosen.period
    around = (base - chosen.period, base, base + chosen.period)
    members = sorted(start + offset for start in around for offset in chosen.offsets if start + offset > 0)
    inside = [member for member in members if low <= member <= high]
    return min(inside or members, key=lambda member: abs(member - value))
