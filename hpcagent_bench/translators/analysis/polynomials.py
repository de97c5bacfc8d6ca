"""Integer polynomials over named values: what subscripts and loop bounds are made of.

A monomial is the sorted tuple of its factors' names, ``()`` the constant. Subscripts that are linear in loop
indices give monomials of one name; flattened ones such as ``i * M + j`` give products with sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Polynomial:
    """``terms`` maps monomials to coefficients; zero coefficients are never kept."""

    terms: Mapping[Monomial, int]

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        return cls({(): value} if value else {})

    @classmethod
    def name(cls, name: str) -> Polynomial:
        return cls({(name,): 1})

    @property
    def offset(self) -> int:
        """The constant term."""
        return self.terms.get((), 0)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for monomial in self.terms for name in monomial)

    @cached_property
    def key(self) -> tuple[tuple[Monomial, int], ...]:
        """The same for equal polynomials."""
        return tuple(sorted(self.terms.items()))

    @property
    def known(self) -> int | None:
        """The value, when no name is in it."""
        return None if self.names else self.offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and dict(self.terms) == dict(other.terms)

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            other = Polynomial.constant(other)
        return _collect((*self.terms.items(), *other.terms.items()))

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            other = Polynomial.constant(other)
        return _collect(
            (tuple(sorted((*left, *right))), a * b)
            for left, a in self.terms.items()
            for right, b in other.terms.items()
        )

    def renamed(self, names: Mapping[str, str]) -> Polynomial:
        """With other names for some; the new names must be distinct."""
        return Polynomial(
            {tuple(sorted(names.get(name, name) for name in m)): factor for m, factor in self.terms.items()}
        )

    @property
    def text(self) -> str:
        """An unambiguous spelling, to make names of."""
        return "+".join(f"{factor}*{'*'.join(monomial)}" for monomial, factor in self.key) or "0"


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    return Polynomial({monomial: factor for monomial, factor in total.items() if factor})
