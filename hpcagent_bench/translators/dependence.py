"""Which loops run their iterations in any order: a conservative test on affine subscripts.

A loop is independent when no element stored in one iteration is touched in another, and no scalar carries a
value from one iteration to the next. What the test cannot prove, it denies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.scopes import mentions, private


@dataclass(frozen=True)
class Affine:
    """``constant`` plus a sum of integer coefficients times names; zero coefficients are never kept."""

    constant: int = 0
    terms: Mapping[str, int] = field(default_factory=dict)

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """``self + factor * other``."""
        names = {*self.terms, *other.terms}
        terms = {name: self.terms.get(name, 0) + factor * other.terms.get(name, 0) for name in names}
        return Affine(
            self.constant + factor * other.constant, {name: c for name, c in terms.items() if c != 0}
        )

    def renamed(self, names: Mapping[str, str]) -> Affine:
        return Affine(self.constant, {names.get(name, name): c for name, c in self.terms.items()})


@dataclass(frozen=True)
class Access:
    """One load or store inside a loop, with the loops between the two, outermost first."""

    array: str
    index: tuple[ir.Expr, ...]
    store: bool
    inner: tuple[ir.For, ...]


def affine(expr: ir.Expr, function: ir.Function) -> Affine | None:
    """``expr`` over loop indices and scalar arguments, or None when it is anything else."""
    match expr:
        case ir.Const() if isinstance(expr.value, int):
            return Affine(int(expr.value))
        case ir.Name() if expr.name not in function.locals:
            return Affine(0, {expr.name: 1})
        case ir.Unary(op="-"):
            operand = affine(expr.operand, function)
            return None if operand is None else Affine().plus(operand, -1)
        case ir.Binary(op="+" | "-" | "*"):
            left, right = affine(expr.left, function), affine(expr.right, function)
            if left is None or right is None:
                return None
            if expr.op != "*":
                return left.plus(right, 1 if expr.op == "+" else -1)
            if left.terms and right.terms:
                return None
            varying, factor = (left, right.constant) if left.terms else (right, left.constant)
            return Affine().plus(varying, factor)
        case _:
            return None


def independent(loop: ir.For, function: ir.Function, outer: tuple[ir.For, ...] = ()) -> bool:
    """Whether the iterations of ``loop`` may run in any order; ``outer`` are the loops around it."""
    if _leaves_early(loop.body) or not _scalars_private(loop, function):
        return False
    accesses = list(_accesses(loop.body, ()))
    for store in (access for access in accesses if access.store):
        for other in (access for access in accesses if access.array == store.array):
            if not _apart(store, other, loop, function, outer):
                return False
    return True


def parallel_loop(function: ir.Function) -> ir.For | None:
    """The outermost independent loop of unit step, the first in program order among equals, or None."""
    level: list[tuple[tuple[ir.For, ...], ir.For]] = [((), loop) for loop in _loops(function.body)]
    while level:
        for outer, loop in level:
            if loop.step == 1 and independent(loop, function, outer):
                return loop
        level = [((*outer, loop), inner) for outer, loop in level for inner in _loops(loop.body)]
    return None


def _loops(body: tuple[ir.Stmt, ...]) -> Iterator[ir.For]:
    """The outermost loops of a body, those under branches included."""
    for stmt in body:
        if isinstance(stmt, ir.For):
            yield stmt
        elif isinstance(stmt, ir.If):
            yield from _loops(ir.nested(stmt))


def _leaves_early(body: tuple[ir.Stmt, ...]) -> bool:
    """A ``break`` of this loop, not of one inside it."""
    for stmt in body:
        if isinstance(stmt, ir.Jump) and stmt.kind == "break":
            return True
        if isinstance(stmt, ir.If) and _leaves_early(ir.nested(stmt)):
            return True
    return False


def _scalars_private(loop: ir.For, function: ir.Function) -> bool:
    """Every local the loop writes starts anew in each iteration and is not used outside the loop."""
    for name in ir.assigned(loop.body) & function.locals.keys():
        if not private(name, loop) or _used_outside(name, loop, function.body):
            return False
    return True


def _used_outside(name: str, loop: ir.For, body: tuple[ir.Stmt, ...]) -> bool:
    for stmt in body:
        if stmt is loop:
            continue
        if any(inner is loop for inner in ir.statements((stmt,))):
            if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
                return True
            if _used_outside(name, loop, ir.nested(stmt)):
                return True
        elif mentions(name, stmt):
            return True
    return False


def _accesses(body: tuple[ir.Stmt, ...], inner: tuple[ir.For, ...]) -> Iterator[Access]:
    for stmt in body:
        for expr in ir.expressions(stmt):
            for node in ir.walk(expr):
                if isinstance(node, ir.Load):
                    yield Access(node.array, node.index, False, inner)
        if isinstance(stmt, ir.Store):
            yield Access(stmt.array, stmt.index, True, inner)
        deeper = (*inner, stmt) if isinstance(stmt, ir.For) else inner
        yield from _accesses(ir.nested(stmt), deeper)


def _apart(
    store: Access, other: Access, loop: ir.For, function: ir.Function, outer: tuple[ir.For, ...]
) -> bool:
    """Whether the two never meet in different iterations of ``loop``: one axis that proves it is enough."""
    moved = {inner.var: f"{inner.var}'" for inner in (loop, *other.inner)}
    ranges = index_ranges((*outer, loop, *store.inner), function, {})
    ranges.update(index_ranges((loop, *other.inner), function, moved))
    for left, right in zip(store.index, other.index, strict=True):
        first, second = affine(left, function), affine(right, function)
        if first is None or second is None:
            continue
        gap = first.plus(second.renamed(moved), -1)
        if _own_element(gap, loop.var, moved[loop.var]):
            return True
        if _positive(gap, ranges) or _positive(Affine().plus(gap, -1), ranges):
            return True
    return False


def _own_element(gap: Affine, here: str, there: str) -> bool:
    """``gap`` is c·(here - there) + constant and cannot vanish while the two differ."""
    factor = gap.terms.get(here, 0)
    if factor == 0 or dict(gap.terms) != {here: factor, there: -factor}:
        return False
    return gap.constant == 0 or gap.constant % factor != 0


Range = tuple[Affine | None, Affine | None]


def index_ranges(
    loops: tuple[ir.For, ...], function: ir.Function, moved: Mapping[str, str]
) -> dict[str, Range]:
    """Lowest and highest value of each index, outermost first, in terms of indices further out."""
    found: dict[str, Range] = {}
    for loop in loops:
        start, stop = affine(loop.start, function), affine(loop.stop, function)
        if loop.step > 0:
            low, high = start, stop and stop.plus(Affine(-1))
        else:
            low, high = stop and stop.plus(Affine(1)), start
        found[moved.get(loop.var, loop.var)] = (low and low.renamed(moved), high and high.renamed(moved))
    return found


def lowest(value: Affine, ranges: Mapping[str, Range]) -> Affine | None:
    """A bound ``value`` never falls below, free of loop indices: the innermost go to their worst first."""
    for name in reversed(list(ranges)):
        factor = value.terms.get(name, 0)
        if factor == 0:
            continue
        worst = ranges[name][0 if factor > 0 else 1]
        if worst is None:
            return None
        value = value.plus(Affine(0, {name: 1}), -factor).plus(worst, factor)
    return value


def _positive(value: Affine, ranges: Mapping[str, Range]) -> bool:
    least = lowest(value, ranges)
    return least is not None and not least.terms and least.constant > 0
