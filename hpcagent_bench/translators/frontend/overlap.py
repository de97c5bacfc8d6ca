"""Whether loops that stand for one array assignment read an element after they have written it.

NumPy computes the whole right side before it stores anything. Loops may do both at once when no iteration
reads what an earlier one wrote; running some of them downwards can make it so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.polynomials import Polynomial
from hpcagent_bench.translators.frontend.knowledge import Knowledge, Range, rewrite
from hpcagent_bench.translators.frontend.sums import ONE, minus, number, plus, polynomial

_MOST_LOOPS_TURNED = 3


@dataclass(frozen=True)
class Touch:
    """An element read or written and the loops around it, outermost first."""

    index: tuple[ir.Expr, ...]
    loops: tuple[ir.For, ...]


def ordered(
    body: tuple[ir.Stmt, ...], array: str, known: Knowledge, turn: bool = True
) -> tuple[ir.Stmt, ...] | None:
    """The same loops in an order that never reads an element of ``array`` it has written, or None.

    Each read must come before the store when both belong to one iteration. Only loops around a store are
    turned, and none unless ``turn``.
    """
    stores = list(_stores(body, array, ()))
    reads = list(_loads(body, array, ()))
    if not reads:
        return body
    around = {id(loop): loop for store in stores for loop in store.loops if loop.step == ONE}
    vars_ = [loop.var for loop in around.values()] if turn else []
    for count in range(min(len(vars_), _MOST_LOOPS_TURNED) + 1):
        for turned in itertools.combinations(vars_, count):
            if not any(
                _late(store, read, array, known, frozenset(turned)) for store in stores for read in reads
            ):
                return _turned(body, frozenset(turned))
    return None


def disjoint(body: tuple[ir.Stmt, ...], reads: Sequence[Touch], array: str, known: Knowledge) -> bool:
    """Whether no store of ``body`` into ``array`` meets any of ``reads``, in whatever order."""
    stores = list(_stores(body, array, ()))
    return not any(_meet(store, read, array, known, 0, None) for store in stores for read in reads)


def _late(store: Touch, read: Touch, array: str, known: Knowledge, turned: frozenset[str]) -> bool:
    """Whether ``read`` may see what ``store`` wrote in an earlier iteration of a loop around both."""
    shared = len([1 for a, b in zip(store.loops, read.loops, strict=False) if a is b])
    for depth in range(shared):
        down = store.loops[depth].descending != (store.loops[depth].var in turned)
        if _meet(store, read, array, known, depth, down):
            return True
    return False


def _meet(store: Touch, read: Touch, array: str, known: Knowledge, depth: int, down: bool | None) -> bool:
    """Whether both may touch one element, the outer ``depth`` loops at one place and the next one at an
    earlier place of the store's (``down`` tells the direction; None asks for no order)."""
    if any(array in ir.reads(part) for touch in (store, read) for part in touch.index):
        return True
    primed = {loop.var: ir.Name(f"{loop.var}'", "int64") for loop in read.loops}
    there = [rewrite(known.expanded(part), primed) for part in read.index]
    here = [known.expanded(part) for part in store.index]
    ranges = [*known.ranges, *(_range(loop) for loop in store.loops)]
    ranges += [
        Range(
            f"{loop.var}'",
            rewrite(loop.start, primed),
            rewrite(loop.stop, primed),
            loop.step,
            loop.descending,
        )
        for loop in read.loops
    ]
    equal = [polynomial(minus(a, b)) for a, b in zip(here, there, strict=True)]
    least: list[Polynomial] = known.facts([*here, *there], ranges)
    for k, loop in enumerate(store.loops[: depth + 1] if down is not None else ()):
        gap = minus(primed[loop.var], ir.Name(loop.var, "int64"))
        if k < depth:
            equal.append(polynomial(gap))
        else:
            least.append(polynomial(gap) * (-1 if down else 1) - 1)
    return not linear.impossible(equal, least)


def _range(loop: ir.For) -> Range:
    return Range(loop.var, loop.start, loop.stop, loop.step, loop.descending)


def _stores(body: tuple[ir.Stmt, ...], array: str, loops: tuple[ir.For, ...]) -> Iterator[Touch]:
    for stmt in body:
        if isinstance(stmt, ir.Store) and stmt.array == array:
            yield Touch(stmt.index, loops)
        inner = (*loops, stmt) if isinstance(stmt, ir.For) else loops
        yield from _stores(ir.nested(stmt), array, inner)


def _loads(body: tuple[ir.Stmt, ...], array: str, loops: tuple[ir.For, ...]) -> Iterator[Touch]:
    for stmt in body:
        for expr in ir.expressions(stmt):
            for node in ir.walk(expr):
                if isinstance(node, ir.Load) and node.array == array:
                    yield Touch(node.index, loops)
        inner = (*loops, stmt) if isinstance(stmt, ir.For) else loops
        yield from _loads(ir.nested(stmt), array, inner)


def loads(body: tuple[ir.Stmt, ...], array: str) -> list[Touch]:
    """Every load of ``array`` in a body."""
    return list(_loads(body, array, ()))


def _turned(body: tuple[ir.Stmt, ...], turned: frozenset[str]) -> tuple[ir.Stmt, ...]:
    if not turned:
        return body
    result: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.For():
                inner = _turned(stmt.body, turned)
                if stmt.var in turned:
                    start, stop = minus(stmt.stop, ONE), minus(stmt.start, ONE)
                    stmt = replace(stmt, start=start, stop=stop, step=number(-1), descending=True)
                result.append(replace(stmt, body=inner))
            case ir.If():
                result.append(
                    replace(stmt, body=_turned(stmt.body, turned), orelse=_turned(stmt.orelse, turned))
                )
            case _:
                result.append(stmt)
    return tuple(result)


__all__ = ["Touch", "disjoint", "loads", "ordered", "plus"]
