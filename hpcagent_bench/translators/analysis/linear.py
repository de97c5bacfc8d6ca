"""Whether a system of linear equations and inequalities can hold in integers.

Equations are solved exactly (the greatest common divisor must divide the constant; a change of variables in
the manner of Euclid leaves a unit coefficient to substitute). Inequalities are then eliminated pair by pair
(Fourier and Motzkin), each divided by the divisor of its coefficients and its constant rounded down, as in
W. Pugh's Omega test (1991). A contradiction found this way is a proof; without one the answer is "perhaps".
Monomials of higher degree count as variables of their own, so the caller adds the products it knows of.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from hpcagent_bench.translators.analysis.polynomials import Monomial, Polynomial

Row = dict[Monomial, int]
_MOST_ROWS = 600
_MOST_ROUNDS = 200


class Contradiction(Exception):
    """The system has no integer solution."""


def impossible(equal: Iterable[Polynomial], least: Iterable[Polynomial]) -> bool:
    """Whether no integers make every polynomial of ``equal`` zero and none of ``least`` negative; False when
    that could not be proved."""
    try:
        _eliminate(_rows(equal), _rows(least), None)
    except Contradiction:
        return True
    return False


def span(
    value: Polynomial, equal: Iterable[Polynomial], least: Iterable[Polynomial]
) -> tuple[int | None, int | None]:
    """Bounds that ``value`` keeps within under the system, None where none was found."""
    sought: Monomial = ("the value sought",)
    equations = _rows([Polynomial({sought: 1}) - value, *equal])
    low = high = None
    try:
        rows = _eliminate(equations, _rows(least), sought)
    except Contradiction:
        return None, None
    for row in rows:
        factor, constant = row.get(sought, 0), row.get((), 0)
        if factor > 0:
            low = -constant if low is None else max(low, -constant)
        elif factor < 0:
            high = constant if high is None else min(high, constant)
    return low, high


def _rows(polynomials: Iterable[Polynomial]) -> list[Row]:
    return [dict(poly.terms) for poly in polynomials]


def _solved(equations: list[Row], rows: list[Row], keep: Monomial | None, round_: int) -> list[Row]:
    """The inequalities with every equation substituted into them; ``keep`` stays a variable of theirs."""
    fresh = 0
    while equations:
        equation = _divided(equations.pop())
        names = [name for name in equation if name]
        if not names:
            continue
        pivot = min(names, key=lambda name: (abs(equation[name]), name == keep, name))
        factor = equation[pivot]
        if (
            abs(factor) > 1
        ):  # write the pivot as a new variable minus the quotients: the remainders are smaller
            others = {name: -(c // factor) for name, c in equation.items() if name != pivot and c // factor}
            solution: Row = {(f"fresh {round_}.{fresh}",): 1, **others}
            fresh += 1
            equations.append(equation)
        else:
            solution = {name: -c * factor for name, c in equation.items() if name != pivot}
        equations = [_substituted(row, pivot, solution) for row in equations]
        rows = [_substituted(row, pivot, solution) for row in rows]
        if pivot == keep:  # it is given by others: say so in two rows
            rows += [{keep: 1, **_negated(solution)}, {keep: -1, **solution}]
    return rows


def _divided(equation: Row) -> Row:
    divisor = math.gcd(*(factor for name, factor in equation.items() if name))
    constant = equation.get((), 0)
    if (divisor == 0 and constant) or (divisor and constant % divisor):
        raise Contradiction
    return {name: factor // divisor for name, factor in equation.items()} if divisor else {}


def _negated(row: Row) -> Row:
    return {name: -factor for name, factor in row.items()}


def _substituted(row: Row, name: Monomial, solution: Row) -> Row:
    factor = row.get(name, 0)
    if not factor:
        return row
    result = {other: value for other, value in row.items() if other != name}
    for other, value in solution.items():
        result[other] = result.get(other, 0) + factor * value
    return {other: value for other, value in result.items() if value}


def _eliminate(equations: list[Row], rows: list[Row], keep: Monomial | None) -> list[Row]:
    """Rows in ``keep`` alone that follow from all of them; fewer than all when the system grows too large."""
    for round_ in itertools.count():
        current = _tightened(_solved(equations, rows, keep, round_))
        equations = [] if round_ > _MOST_ROUNDS else _implied(current, keep)
        if equations:
            rows = current
            continue
        signs: dict[Monomial, tuple[int, int]] = {}
        for row in current:
            for name, factor in row.items():
                if name and name != keep:
                    up, down = signs.get(name, (0, 0))
                    signs[name] = (up + 1, down) if factor > 0 else (up, down + 1)
        if not signs:
            return current
        name = min(signs, key=lambda n: (signs[n][0] * signs[n][1] - sum(signs[n]), n))
        lower = [row for row in current if row.get(name, 0) > 0]
        upper = [row for row in current if row.get(name, 0) < 0]
        rest = [row for row in current if not row.get(name, 0)]
        if len(rest) + len(lower) * len(upper) > _MOST_ROWS:
            return [row for row in rest if set(row) <= {(), keep}]
        rows = [*rest, *(_combined(a, b, name) for a in lower for b in upper)]
    raise AssertionError("every round removes a variable")


def _implied(rows: list[Row], keep: Monomial | None) -> list[Row]:
    """An equation that two opposite rows make up: p >= 0 and -p >= 0."""
    known = {tuple(sorted(row.items())) for row in rows}
    for row in rows:
        if keep not in row and tuple(sorted(_negated(row).items())) in known:
            return [row]
    return []


def _combined(lower: Row, upper: Row, name: Monomial) -> Row:
    a, b = lower[name], -upper[name]
    result = {other: b * factor for other, factor in lower.items() if other != name}
    for other, factor in upper.items():
        if other != name:
            result[other] = result.get(other, 0) + a * factor
    return {other: factor for other, factor in result.items() if factor}


def _tightened(rows: Iterable[Row]) -> list[Row]:
    """Rows divided by the divisor of their coefficients, the strictest of equal ones, constants checked."""
    strictest: dict[tuple[tuple[Monomial, int], ...], int] = {}
    for row in rows:
        divisor = math.gcd(*(factor for name, factor in row.items() if name))
        constant = row.get((), 0)
        if divisor == 0:
            if constant < 0:
                raise Contradiction
            continue
        key = tuple(sorted((name, factor // divisor) for name, factor in row.items() if name))
        strictest[key] = min(strictest.get(key, constant // divisor), constant // divisor)
    return [dict(key) | ({(): constant} if constant else {}) for key, constant in strictest.items()]


def products(facts: list[Polynomial], others: Iterable[Polynomial] = ()) -> list[Polynomial]:
    """Products of linear facts with values that are never negative, as far as their monomials occur.

    They tie ``i * M``, a variable of its own here, to ``i`` and ``M``.
    """
    occurring = {monomial for poly in (*facts, *others) for monomial in poly.terms if len(monomial) == 2}
    factors = sorted({name for pair in occurring for name in pair})
    flat = [fact for fact in facts if all(len(monomial) < 2 for monomial in fact.terms)]
    found = []
    for name in factors:
        value = Polynomial.name(name)
        if impossible([], [*flat, -value - 1]):
            partners = {other for pair in occurring if name in pair for other in pair}
            found += [fact * value for fact in flat if fact.names & partners]
    return found
