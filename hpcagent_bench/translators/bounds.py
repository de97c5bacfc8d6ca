"""Indices below zero: NumPy counts them from the end, C leaves the array, so they are refused."""

from __future__ import annotations

from collections.abc import Iterator

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.dependence import affine, index_ranges, lowest
from hpcagent_bench.translators.reading import Unsupported


def check(kernel: Kernel, function: ir.Function) -> None:
    """Refuse an index that certainly starts below zero; what stands under a condition is left to it."""
    for array, index, line, loops in _unconditional(function.body, ()):
        ranges = index_ranges(loops, function, {})
        for axis in index:
            value = affine(axis, function)
            least = lowest(value, ranges) if value is not None else None
            if least is not None and not least.terms and least.constant < 0:
                construct = f"an index of '{array}' that starts at {least.constant}"
                raise Unsupported(kernel.numpy_source, line, construct, "start the loop where the index is 0")


Place = tuple[str, tuple[ir.Expr, ...], int, tuple[ir.For, ...]]


def _unconditional(body: tuple[ir.Stmt, ...], loops: tuple[ir.For, ...]) -> Iterator[Place]:
    """Every element access of a body that no ``if`` guards: array, index, line and the loops around it."""
    for stmt in body:
        for expr in ir.expressions(stmt):
            for load in _loads(expr):
                yield load.array, load.index, stmt.line, loops
        if isinstance(stmt, ir.Store):
            yield stmt.array, stmt.index, stmt.line, loops
        if isinstance(stmt, ir.If) and any(isinstance(inner, ir.Jump) for inner in ir.statements((stmt,))):
            return  # what follows is guarded by the jump
        if isinstance(stmt, ir.For):
            yield from _unconditional(stmt.body, (*loops, stmt))


def _loads(expr: ir.Expr) -> Iterator[ir.Load]:
    if isinstance(expr, (ir.Select, ir.Logical)):  # evaluated only as far as its tests say
        return
    if isinstance(expr, ir.Load):
        yield expr
    for child in ir.children(expr):
        yield from _loads(child)
