"""Sizes: the rung a study runs at, the draws of timed inputs around it, and those of untimed checks."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hpcagent_bench.config import Sizes
from hpcagent_bench.corpus import size_forms
from hpcagent_bench.corpus.size_forms import Constructed, Fixed, Interval, Members, SizeForm, Smooth
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError, did_you_mean


def rung_name(sizes: Sizes) -> str:
    """The name recorded on every grade as its preset: ``XL``, or that of the bytes-bounded group."""
    return "XL" if sizes.bytes is None else sizes.name


EDGES = (1, 3, 5, 6, 7)
"""Sizes at which loops, blocks and vectors end early."""

_ATTEMPTS = 64
_ATTEMPT_STEP = 1_000_003


def rung(kernel: Kernel, sizes: Sizes, datatype: str = "float64") -> dict[str, int]:
    """Every size symbol of the timed rung.

    XL, or XL scaled down with its aspect kept so that the arrays of one input come as near below
    ``sizes.bytes`` as integers allow; never above XL. Symbols equal in all presets stay, smooth, listed and
    derived sizes take the values their form allows, and constraints hold. A bound too small for the smallest
    input is a UserError.
    """
    if sizes.bytes is None:
        return kernel.presets["XL"]
    return dict(_bounded_rung(kernel, sizes.name, sizes.bytes, datatype))


@functools.lru_cache(maxsize=256)
def _bounded_rung(kernel: Kernel, name: str, most: int, datatype: str) -> tuple[tuple[str, int], ...]:
    """The rung of at most ``most`` bytes; remembered, since every grade asks for it."""
    full = kernel.presets["XL"]
    if kernel.input_bytes(full, datatype) <= most:
        return tuple(full.items())
    longest = max((full[symbol] for symbol in kernel.size_symbols), default=1)
    low, high = 0, longest  # largest step of the longest size that fits lies in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        fits = kernel.input_bytes(_scaled(kernel, middle, longest), datatype) <= most
        low, high = (middle, high) if fits else (low, middle)
    for step in range(low, max(0, low - _ATTEMPTS * _ATTEMPTS), -1):
        scaled = _scaled(kernel, step, longest)
        if kernel.broken_constraint(scaled) is None:
            return tuple(scaled.items())
    least = kernel.input_bytes(_scaled(kernel, 1, longest), datatype)
    raise UserError(
        f"sizes {name}: bytes = {most} is too small for {kernel.name}",
        f"its smallest input takes {least} bytes",
    )


def _scaled(kernel: Kernel, step: int, longest: int) -> dict[str, int]:
    full, forms = kernel.presets["XL"], kernel.manifest.fuzzed
    free = {symbol: max(1, full[symbol] * step // longest) for symbol in kernel.size_symbols}
    leaves = {symbol: _fitting(forms.get(symbol), size) for symbol, size in free.items()}
    return {**full, **_settled(kernel, leaves, {})}


def _fitting(form: SizeForm | None, size: int) -> int:
    """The largest number up to ``size`` that a form allows (of a constructed one the ``gen``, as it is)."""
    if isinstance(form, Smooth):
        return size_forms.snap_down(size, form.prime)
    if isinstance(form, Members):
        return max((v for v in form.values if v <= size), default=form.values[0])
    if isinstance(form, Constructed):
        return _fitting(form.gen, size)
    return size


def _settled(
    kernel: Kernel, leaves: Mapping[str, int | None], config: Mapping[str, int | float]
) -> dict[str, int]:
    """The free sizes that follow from drawn leaves; preset constants and knobs are known beside them."""
    forms: dict[str, SizeForm] = {s: Fixed(1) for s in kernel.size_symbols}
    forms |= {s: f for s, f in kernel.manifest.fuzzed.items() if s in forms}
    return size_forms.settle(forms, leaves, {**kernel.scalars({}), **config})


@dataclass(frozen=True)
class _Class:
    """The sizes ``offset + k * period`` for an offset in ``offsets`` (all of them below ``period``)."""

    period: int
    offsets: tuple[int, ...]

    def holds(self, number: int) -> bool:
        """Whether a size belongs to the class."""
        return number % self.period in self.offsets


_CLASSES = {
    "aligned": _Class(64, (0,)),
    "odd": _Class(2, (1,)),
    "odd8": _Class(16, (8,)),
    "even": _Class(8, (2, 4, 6)),
}
"""A multiple of 64; odd; 8 times an odd number; even and no multiple of 8. No size is in two classes."""

_ANY = _Class(1, (0,))


def draw_sizes(
    kernel: Kernel,
    rung: Mapping[str, int],
    size_class: str,
    rng: np.random.Generator,
    lo: float,
    hi: float,
    config: Mapping[str, int | float] | None = None,
) -> dict[str, int]:
    """One draw: every free size uniform in [lo, hi] x rung, then moved to the nearest member of its class.

    The member lies inside the interval when there is one, else it is the nearest positive one. A size with a
    form of its own in preset ``fuzzed`` is drawn from the upper half of its interval, scaled as the rung is
    against XL; a smooth one is the nearest smooth member of the class, a listed one a listed member. Symbols
    that are not free keep the rung's value. One number is taken from ``rng`` per free size, in sorted order.
    Draws that break a constraint are repeated, at last without the class; none at all is a UserError.
    """
    if size_class not in _CLASSES:
        raise UserError(f"size class '{size_class}' does not exist", did_you_mean(size_class, _CLASSES))
    knobs = config or {}
    broken: str | None = None
    for wanted in (_CLASSES[size_class], _ANY):
        for _ in range(_ATTEMPTS):
            leaves = {s: _timed(kernel, s, rung, wanted, rng, lo, hi) for s in kernel.size_symbols}
            drawn = {**rung, **_settled(kernel, leaves, knobs)}
            broken = kernel.broken_constraint({**drawn, **knobs})
            if broken is None:
                return drawn
    raise UserError(
        f"kernel {kernel.name}: no sizes near {dict(rung)} satisfy '{broken}'", "widen preset fuzzed"
    )


def _timed(
    kernel: Kernel,
    symbol: str,
    rung: Mapping[str, int],
    wanted: _Class,
    rng: np.random.Generator,
    lo: float,
    hi: float,
) -> int | None:
    """The leaf of one free size of a timed input; None for a derived one."""
    form = kernel.manifest.fuzzed.get(symbol)
    if form is None:
        low, high = math.ceil(lo * rung[symbol]), math.floor(hi * rung[symbol])
        return _move(_uniform(low, high, rng), wanted, max(1, low), max(1, high))
    if isinstance(form, Members):
        return _member(form, rung[symbol], wanted, rng)
    if isinstance(form, Constructed):
        gen = form.gen
        if isinstance(gen, Members):
            return _member(gen, gen.values[-1], _ANY, rng)
        return _uniform((gen.lo + gen.hi) // 2, gen.hi, rng)
    if not isinstance(form, (Interval, Smooth)):
        return form.value if isinstance(form, Fixed) else None
    full = kernel.presets["XL"][symbol]
    low, high = ((form.lo + form.hi) * rung[symbol] // (2 * full), form.hi * rung[symbol] // full)
    value = _uniform(low, high, rng)
    if isinstance(form, Interval):
        return _move(value, wanted, max(1, low), max(1, high))
    return _smooth_member(form.prime, value, wanted, high)


def _uniform(low: int, high: int, rng: np.random.Generator) -> int:
    low, high = max(1, low), max(1, high)
    return int(rng.integers(min(low, high), high, endpoint=True))


def _member(form: Members, most: int, wanted: _Class, rng: np.random.Generator) -> int:
    """One of the upper half of the listed sizes up to ``most``, of the class where it holds any."""
    usable = [v for v in form.values if v <= most] or [form.values[0]]
    upper = usable[len(usable) // 2 :]
    chosen = [v for v in upper if wanted.holds(v)] or upper
    return chosen[int(rng.integers(len(chosen)))]


def _smooth_member(prime: int, value: int, wanted: _Class, high: int) -> int:
    """The smooth number of the class nearest to ``value``, up to ``high`` where there is one."""
    members = [
        n for n in size_forms.smooth_numbers(1, 2 * max(value, wanted.period), prime) if wanted.holds(n)
    ]
    inside = [n for n in members if n <= high]
    return min(inside or members or [value], key=lambda n: abs(n - value))


def _move(value: int, chosen: _Class, low: int, high: int) -> int:
    base = value - value % chosen.period
    around = (base - chosen.period, base, base + chosen.period)
    members = sorted(start + offset for start in around for offset in chosen.offsets if start + offset > 0)
    inside = [member for member in members if low <= member <= high]
    return min(inside or members, key=lambda member: abs(member - value))


def edge_sizes(kernel: Kernel, edge: int) -> dict[str, int]:
    """Every free size set to ``edge`` (one of EDGES), or to its declared maximum where that is smaller."""
    full, forms = kernel.presets["XL"], kernel.manifest.fuzzed
    leaves = {s: _fitting(forms.get(s), min(edge, full[s])) for s in kernel.size_symbols}
    return {**full, **_settled(kernel, leaves, {})}


def correctness_sizes(
    kernel: Kernel, seed: int, config: Mapping[str, int | float] | None = None
) -> dict[str, int]:
    """One draw for an untimed check: sizes even over their magnitudes, from S to XL or as declared.

    A draw that breaks a constraint is repeated with ``seed`` + 1000003 an attempt; after 64 a UserError.
    """
    knobs, full, small = config or {}, kernel.presets["XL"], kernel.presets["S"]
    broken: str | None = None
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng(seed + attempt * _ATTEMPT_STEP)
        forms = kernel.manifest.fuzzed
        leaves = {
            s: size_forms.draw(forms.get(s, Interval(min(small[s], full[s]), full[s])), rng, log_uniform=True)
            for s in kernel.size_symbols
        }
        drawn = {**full, **_settled(kernel, leaves, knobs)}
        broken = kernel.broken_constraint({**drawn, **knobs})
        if broken is None:
            return drawn
    raise UserError(
        f"kernel {kernel.name}: no draw of {_ATTEMPTS} satisfies '{broken}'", "widen preset fuzzed"
    )
