"""Integer polynomials over names, and a sound test whether affine constraints can hold together.

A product such as ``i * N`` is a monomial of its own and treated as one more unknown: that only loosens the
constraints, so "cannot hold" is always right, and "can hold" may be too careful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from .ir import Bin, Cast, Expr, Name, Num, Un

Monomial = tuple[str, ...]
MAX_CONSTRAINTS = 400
INTEGER_TYPES = ("int64_t", "int32_t", "size_t", "int", "long", "uint64_t")


@dataclass(frozen=True)
class Poly:
    """``sum(coefficient * product(names))``; the empty monomial is the constant."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        return Poly(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @staticmethod
    def const(value: int) -> Poly:
        return Poly.of({(): value})

    @staticmethod
    def name(name: str) -> Poly:
        return Poly.of({(name,): 1})

    def __add__(self, other: Poly | int) -> Poly:
        total = dict(self.terms)
        for monomial, coefficient in _poly(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Poly.of(total)

    def __sub__(self, other: Poly | int) -> Poly:
        return self + _poly(other) * -1

    def __mul__(self, other: Poly | int) -> Poly:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _poly(other).terms:
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + a * b
        return Poly.of(total)

    @property
    def constant(self) -> int | None:
        """The value, when no name is left."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    def coefficient(self, name: str) -> Poly:
        """What multiplies ``name`` (which must occur at most once per monomial)."""
        found = {tuple(n for n in m if n != name): c for m, c in self.terms if name in m}
        return Poly.of(found)

    def names(self) -> set[str]:
        return {name for monomial, _ in self.terms for name in monomial}

    def rename(self, names: Mapping[str, str]) -> Poly:
        total: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            new = tuple(sorted(names.get(name, name) for name in monomial))
            total[new] = total.get(new, 0) + coefficient
        return Poly.of(total)

    def substitute(self, name: str, value: Poly) -> Poly:
        rest = Poly.of({m: c for m, c in self.terms if name not in m})
        return rest + self.coefficient(name) * value


def _poly(value: Poly | int) -> Poly:
    return Poly.const(value) if isinstance(value, int) else value


def to_poly(expr: Expr, known: Callable[[str], bool]) -> Poly | None:
    """The polynomial of an integer expression; None when it holds anything but ``known`` names, + - and *."""
    match expr:
        case Num(text):
            return Poly.const(int(text.rstrip("uUlL"), 0)) if _is_integer(text) else None
        case Name(name):
            return Poly.name(name) if known(name) else None
        case Cast(type_, operand):
            return to_poly(operand, known) if type_ in INTEGER_TYPES else None
        case Un("-", operand):
            inner = to_poly(operand, known)
            return None if inner is None else inner * -1
        case Bin(op, left, right) if op in ("+", "-", "*"):
            a, b = to_poly(left, known), to_poly(right, known)
            if a is None or b is None:
                return None
            return a + b if op == "+" else a - b if op == "-" else a * b
        case _:
            return None


def _is_integer(text: str) -> bool:
    return text.rstrip("uUlL").isdigit()


def to_expr(poly: Poly) -> Expr:
    """The polynomial as an expression, positive terms first and the constant last."""
    ordered = sorted(poly.terms, key=lambda term: (term[0] == (), term[1] < 0))
    total: Expr | None = None
    for monomial, coefficient in ordered:
        factors: list[Expr] = [Name(name) for name in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, Num(str(abs(coefficient))))
        term = factors[0]
        for factor in factors[1:]:
            term = Bin("*", term, factor)
        if total is None:
            total = term if coefficient > 0 else Un("-", term)
        else:
            total = Bin("+" if coefficient > 0 else "-", total, term)
    return total if total is not None else Num("0")


def split(poly: Poly, stride: Poly) -> tuple[Poly, Poly]:
    """Quotient and remainder of a flat subscript by a stride: ``i*N + j`` by ``N`` is (i, j)."""
    if not stride.terms:
        return Poly.const(0), poly
    lead, scale = max(stride.terms, key=lambda term: (len(term[0]), term[0]))
    quotient, rest = Poly.const(0), poly
    for monomial, coefficient in poly.terms:
        left = _without(monomial, lead)
        if left is not None and coefficient % scale == 0:
            part = Poly.of({left: coefficient // scale})
            quotient, rest = quotient + part, rest - part * stride
    return quotient, rest


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    left = list(monomial)
    for name in factor:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


Row = tuple[tuple[tuple[Monomial, int], ...], int]


def feasible(at_least_zero: Iterable[Poly], zero: Iterable[Poly] = ()) -> bool:
    """Whether integers may exist with every polynomial of the first list >= 0 and of the second = 0.

    Fourier-Motzkin elimination with integer tightening. False is a proof; True may only mean "not disproved".
    """
    rows, equalities = list(at_least_zero), list(zero)
    while equalities:
        equality = equalities.pop()
        if equality.constant is not None:
            if equality.constant != 0:
                return False
            continue
        divisor = gcd(*(c for m, c in equality.terms if m))
        offset = dict(equality.terms).get((), 0)
        if offset % divisor:
            return False
        pivot = next((m for m, c in equality.terms if m and abs(c) == divisor), None)
        if pivot is None:
            rows += [equality, equality * -1]
            continue
        value = _solve(equality, pivot, divisor)
        rows = [_replace(row, pivot, value) for row in rows]
        equalities = [_replace(row, pivot, value) for row in equalities]
    return _eliminate({row for row in map(_tighten, rows) if row is not None})


def _solve(equality: Poly, pivot: Monomial, divisor: int) -> Poly:
    """The pivot of ``equality = 0`` as a polynomial of the other terms."""
    sign = dict(equality.terms)[pivot] // divisor
    return Poly.of({m: -sign * c // divisor for m, c in equality.terms if m != pivot})


def _replace(row: Poly, pivot: Monomial, value: Poly) -> Poly:
    coefficient = dict(row.terms).get(pivot, 0)
    return row + (value - Poly.of({pivot: 1})) * coefficient if coefficient else row


def _tighten(row: Poly) -> Poly | None:
    """The row divided by the gcd of its coefficients, the constant rounded down; None when always true."""
    if row.constant is not None:
        return None if row.constant >= 0 else Poly.const(-1)
    divisor = gcd(*(c for m, c in row.terms if m))
    return Poly.of({m: c // divisor for m, c in row.terms})


def _eliminate(rows: set[Poly]) -> bool:
    while True:
        if any(row.constant is not None for row in rows):
            return False
        if not rows:
            return True
        if len(rows) > MAX_CONSTRAINTS:
            return True
        pivot = _cheapest(rows)
        upper = [r for r in rows if dict(r.terms).get(pivot, 0) < 0]
        lower = [r for r in rows if dict(r.terms).get(pivot, 0) > 0]
        rows = {r for r in rows if not dict(r.terms).get(pivot, 0)}
        for up in upper:
            for low in lower:
                a, b = -dict(up.terms)[pivot], dict(low.terms)[pivot]
                combined = _tighten(up * b + low * a)
                if combined is not None:
                    rows.add(combined)


def _cheapest(rows: set[Poly]) -> Monomial:
    """The unknown whose elimination makes the fewest new rows."""
    signs: dict[Monomial, list[int]] = {}
    for row in rows:
        for monomial, coefficient in row.terms:
            if monomial:
                signs.setdefault(monomial, [0, 0])[coefficient > 0] += 1
    return min(sorted(signs), key=lambda m: signs[m][0] * signs[m][1] - sum(signs[m]))
