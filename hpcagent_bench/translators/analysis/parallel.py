"""The loop a parallel variant runs in parallel, and accumulators of its own for elements it reduces into."""

from __future__ import annotations

from dataclasses import replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict, parallel_loop, verdicts
from hpcagent_bench.translators.analysis.reductions import Reduction
from hpcagent_bench.translators.rewriting import mapped, with_bodies, with_expressions

Body = tuple[ir.Stmt, ...]


def chosen(function: ir.Function, language: str, *, reductions: bool) -> tuple[ir.Function, Verdict | None]:
    """The function and the verdict on the loop to run parallel, if there is one ``language`` can run so.

    An array element that the loop reduces into becomes a scalar around it, since no language takes elements.
    """
    loop = parallel_loop(function, reductions=reductions)
    if loop is None:
        return function, None
    verdict = verdicts(function)[id(loop)]
    function, verdict = _with_accumulators(function, loop, verdict)
    if not all(
        _possible(reduction, function, language, verdict.loop.body) for reduction in verdict.reductions
    ):
        return function, None
    return function, verdict


def _possible(reduction: Reduction, function: ir.Function, language: str, body: Body) -> bool:
    """Whether the language has the reduction: numba none by branches, OpenMP few on complex numbers."""
    dtype = function.locals[reduction.name]
    if language == "numba":
        return reduction.op in "+*" and _added_in_place(reduction.name, body) and dtype != "bool"
    return not ir.is_complex(dtype) or (reduction.op == "+" and language != "cpp")


def _added_in_place(name: str, body: Body) -> bool:
    """Whether every update reads ``s = s + x`` or ``s = s * x``: the form that numba recognises."""
    for stmt in ir.statements(body):
        if isinstance(stmt, ir.Assign) and stmt.name == name:
            match stmt.value:
                case ir.Binary(op="+" | "*", left=ir.Name(name=left)) if left == name:
                    continue
            return False
    return True


def _with_accumulators(function: ir.Function, loop: ir.For, verdict: Verdict) -> tuple[ir.Function, Verdict]:
    elements = [reduction for reduction in verdict.reductions if reduction.index is not None]
    if not elements:
        return function, verdict
    known = {*function.arrays, *function.locals, *function.scalars}
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    kept = [reduction for reduction in verdict.reductions if reduction.index is None]
    locals_ = dict(function.locals)
    body = loop.body
    for reduction in elements:
        assert reduction.index is not None
        name = _fresh(f"{reduction.name}_total", known)
        known.add(name)
        dtype = ir.computes_in(function.arrays[reduction.name].dtype)
        locals_[name] = dtype
        before.append(ir.Assign(name, ir.Load(reduction.name, reduction.index, dtype), loop.line))
        after.append(ir.Store(reduction.name, reduction.index, ir.Name(name, dtype), loop.line))
        body = _scalar(body, reduction, ir.Name(name, dtype))
        kept.append(Reduction(name, reduction.op))
    within = replace(loop, body=body)
    new = replace(function, locals=locals_, body=_exchanged(function.body, loop, (*before, within, *after)))
    return new, replace(verdict, loop=within, reductions=tuple(kept))


def _fresh(wanted: str, known: set[str]) -> str:
    name, count = wanted, 1
    while name in known:
        count += 1
        name = f"{wanted}{count}"
    return name


def _exchanged(body: Body, loop: ir.For, instead: Body) -> Body:
    """A body with ``loop`` replaced, however deep it stands."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if stmt is loop:
            result.extend(instead)
        else:
            result.append(with_bodies(stmt, lambda inner: _exchanged(inner, loop, instead)))
    return tuple(result)


def _scalar(body: Body, reduction: Reduction, name: ir.Name) -> Body:
    """A body with the element of a reduction read and written as a scalar."""

    def expr(node: ir.Expr) -> ir.Expr:
        if isinstance(node, ir.Load) and (node.array, node.index) == (reduction.name, reduction.index):
            return name
        return mapped(node, expr)

    result: list[ir.Stmt] = []
    for stmt in body:
        stmt = with_bodies(with_expressions(stmt, expr), lambda inner: _scalar(inner, reduction, name))
        if isinstance(stmt, ir.Store) and (stmt.array, stmt.index) == (reduction.name, reduction.index):
            stmt = ir.Assign(name.name, stmt.value, stmt.line)
        result.append(stmt)
    return tuple(result)
