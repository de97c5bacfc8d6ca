"""How the sizes of the ``fuzzed`` preset are written and drawn.

A size is a plain number, an interval ``[lo, hi]``, ``{set: [...]}``, ``{derive: expr}`` over other sizes,
``{construct: expr, gen: [lo, hi] or {set: [...]}}`` where the expression reads the drawn number as ``gen``,
or ``{smooth: p, range: [lo, hi]}``: a number of the range, moved down to one whose prime factors are at most
p.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hpcagent_bench.corpus import expressions
from hpcagent_bench.errors import UserError, did_you_mean

GENERATED = "gen"
Number = int | float


@dataclass(frozen=True)
class Fixed:
    """One number."""

    value: int


@dataclass(frozen=True)
class Interval:
    """Any number of [lo, hi]."""

    lo: int
    hi: int


@dataclass(frozen=True)
class Members:
    """One of the listed numbers, ascending."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Derived:
    """The value of an expression over other sizes and knobs."""

    expression: str


@dataclass(frozen=True)
class Constructed:
    """The value of an expression over a drawn number, ``gen``, and other sizes and knobs."""

    expression: str
    gen: Interval | Members


@dataclass(frozen=True)
class Smooth:
    """A number of [lo, hi] whose prime factors are at most ``prime``."""

    prime: int
    lo: int
    hi: int


SizeForm = Fixed | Interval | Members | Derived | Constructed | Smooth
_KEYS = ("set", "derive", "construct", "gen", "smooth", "range")


def parse(value: Any) -> SizeForm:
    """Read one size of the ``fuzzed`` preset; a mistake is a ValueError of one line."""
    if isinstance(value, SizeForm):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Fixed(_size(value))
    if isinstance(value, list):
        return _interval(value)
    if not isinstance(value, dict):
        raise ValueError(
            f"{value!r} is no size; write a number, [lo, hi] or one of {{set, derive, construct, smooth}}"
        )
    for key in value:
        if key not in _KEYS:
            raise ValueError(f"unknown key '{key}'; {did_you_mean(str(key), _KEYS)}")
    keys = set(value)
    if keys == {"set"}:
        return _members(value["set"])
    if keys == {"derive"}:
        return Derived(_expression(value["derive"]))
    if keys == {"construct", "gen"}:
        gen = value["gen"]
        drawn = _members(gen["set"]) if isinstance(gen, dict) and set(gen) == {"set"} else _interval(gen)
        return Constructed(_expression(value["construct"]), drawn)
    if keys == {"smooth", "range"}:
        span, prime = _interval(value["range"]), _size(value["smooth"])
        if prime < 2 or snap_down(span.hi, prime) < span.lo:
            raise ValueError(f"range [{span.lo}, {span.hi}] holds no {prime}-smooth number")
        return Smooth(prime, span.lo, span.hi)
    raise ValueError(
        f"keys {sorted(keys)} do not go together; write set, derive, construct + gen or smooth + range"
    )


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is no size; sizes are whole numbers from 1")
    return value


def _interval(value: Any) -> Interval:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{value!r} is not an interval; write [lo, hi]")
    lo, hi = _size(value[0]), _size(value[1])
    if lo > hi:
        raise ValueError(f"[{lo}, {hi}] is not an interval; write [lo, hi] with lo <= hi")
    return Interval(lo, hi)


def _members(value: Any) -> Members:
    if not isinstance(value, list) or not value:
        raise ValueError(f"set is {value!r}; write a list of sizes")
    return Members(tuple(sorted({_size(item) for item in value})))


def _expression(text: Any) -> str:
    try:
        expressions.axes(str(text))
    except UserError as error:
        raise ValueError(str(error)) from None
    return str(text)


def snap_down(number: int, prime: int) -> int:
    """The largest number up to ``number`` whose prime factors are at most ``prime``."""
    return smooth_numbers(1, number, prime)[-1]


@cache
def smooth_numbers(lo: int, hi: int, prime: int) -> list[int]:
    """Every number of [lo, hi] whose prime factors are at most ``prime``, ascending."""
    numbers = [1]
    for factor in range(2, prime + 1):
        if all(factor % smaller for smaller in range(2, factor)):
            numbers = _multiples(numbers, factor, hi)
    return sorted(number for number in numbers if number >= lo)


def _multiples(numbers: list[int], factor: int, limit: int) -> list[int]:
    found = []
    for number in numbers:
        while number <= limit:
            found.append(number)
            number *= factor
    return found


def draw(form: SizeForm, rng: np.random.Generator, *, log_uniform: bool) -> int | None:
    """A number for a leaf form (for a constructed one, its ``gen``); None for a derived one."""
    if isinstance(form, Constructed):
        return draw(form.gen, rng, log_uniform=log_uniform)
    if isinstance(form, Derived):
        return None
    if isinstance(form, Fixed):
        return form.value
    if isinstance(form, Members):
        return int(form.values[rng.integers(len(form.values))])
    value = _between(form.lo, form.hi, rng, log_uniform)
    if isinstance(form, Smooth):
        snapped = snap_down(value, form.prime)
        return snapped if snapped >= form.lo else smooth_numbers(form.lo, form.hi, form.prime)[0]
    return value


def _between(lo: int, hi: int, rng: np.random.Generator, log_uniform: bool) -> int:
    if not log_uniform:
        return int(rng.integers(lo, hi, endpoint=True))
    return min(hi, int(np.exp(rng.uniform(np.log(lo), np.log(hi + 1)))))


def settle(
    forms: Mapping[str, SizeForm], drawn: Mapping[str, int | None], known: Mapping[str, Number]
) -> dict[str, int]:
    """Evaluate derived and constructed sizes until none is left; one that depends on itself is a UserError.

    ``drawn`` holds the leaves' numbers (``gen`` of constructed ones), ``known`` the knobs.
    """
    open_forms = {s: f for s, f in forms.items() if isinstance(f, (Derived, Constructed))}
    values: dict[str, Number] = {**known}
    values |= {s: n for s, n in drawn.items() if s not in open_forms and n is not None}
    while open_forms:
        ready = [
            s
            for s, form in open_forms.items()
            if not (expressions.symbols(form.expression) - {GENERATED}) & (set(open_forms))
        ]
        if not ready:
            raise UserError(f"sizes {', '.join(sorted(open_forms))} are derived from one another")
        for symbol in ready:
            form = open_forms.pop(symbol)
            gen = {} if isinstance(form, Derived) else {GENERATED: drawn[symbol] or 0}
            values[symbol] = expressions.integer(form.expression, {**values, **gen})
    return {symbol: int(values[symbol]) for symbol in forms}
