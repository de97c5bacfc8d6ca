"""Other orders of a reference's own loops, made on its typed form: right ones and wrong ones.

Which loops may be reordered is what the dependence analysis proved; a kernel without such loops has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hpcagent_bench.corpus_check.translation import Translation
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict
from hpcagent_bench.translators.analysis.reductions import Reduction
from hpcagent_bench.translators.backends import emit_c
from hpcagent_bench.translators.backends.writing import Source, without_dead_locals
from hpcagent_bench.translators.rewriting import mapped, with_bodies, with_expressions

Body = tuple[ir.Stmt, ...]
OnLoop = Callable[[ir.For, Verdict, Body], Body | None]
"""Given a parallel loop, its verdict and its rewritten body: what stands in its place, None to leave it."""

_BLOCK = 64
_CHUNKS = 16  # a power of two
_IDENTITY: dict[str, float] = {"+": 0.0, "*": 1.0}


@dataclass(frozen=True)
class Reordering:
    """One way to rewrite a function; ``apply`` gives None where there is nothing to do."""

    label: str
    apply: Callable[[Translation], ir.Function | None]

    def source(self, of: Translation) -> str | None:
        """The rewritten kernel in C."""
        changed = self.apply(of)
        if changed is None:
            return None
        return emit_c.emit(Source(of.kernel, without_dead_locals(changed), "float64"))


def reversed_loops(of: Translation) -> ir.Function | None:
    """Every parallel loop of unit step runs from its end to its start."""

    def backwards(loop: ir.For, verdict: Verdict, body: Body) -> Body | None:
        if not loop.unit:
            return None
        start, stop = _minus_one(loop.stop), _minus_one(loop.start)
        minus = ir.Const(-1, "int64")
        return (replace(loop, start=start, stop=stop, step=minus, descending=True, body=body),)

    return _rewritten(of, backwards)


def blocked_sums(of: Translation) -> ir.Function | None:
    """Sums and products of scalars: a partial one for every 64 terms, added to the whole."""
    function = of.function
    locals_: dict[str, str] = {}

    def blocked(loop: ir.For, verdict: Verdict, body: Body) -> Body | None:
        sums = _scalar_sums(loop, verdict)
        if not sums:
            return None
        outer = f"{loop.var}_block"
        block = ir.Name(outer, "int64")
        last = _lesser(_binary("+", block, ir.Const(_BLOCK, "int64")), loop.stop)
        before: list[ir.Stmt] = []
        after: list[ir.Stmt] = []
        for reduction in sums:
            dtype = function.locals[reduction.name]
            part = ir.Name(f"{reduction.name}_block", dtype)
            locals_[part.name] = dtype
            before.append(ir.Assign(part.name, _identity(reduction, dtype), loop.line))
            whole = ir.Name(reduction.name, dtype)
            total = ir.Binary(reduction.op, whole, part, dtype)
            after.append(ir.Assign(reduction.name, total, loop.line))
            body = _renamed(body, reduction.name, part)
        inner = replace(loop, start=block, stop=last, body=body)
        step = ir.Const(_BLOCK, "int64")
        return (replace(loop, var=outer, step=step, body=(*before, inner, *after)),)

    changed = _rewritten(of, blocked)
    return changed and replace(changed, locals={**changed.locals, **locals_})


def pairwise_sums(of: Translation) -> ir.Function | None:
    """Sums and products of scalars: sixteen parts, combined two by two."""
    function = of.function
    arrays: dict[str, ir.Array] = {}

    def paired(loop: ir.For, verdict: Verdict, body: Body) -> Body | None:
        sums = [r for r in _scalar_sums(loop, verdict) if f"{r.name}_parts" not in arrays]
        if not sums:
            return None
        chunk = ir.Name(f"{loop.var}_chunk", "int64")
        extent = _binary("-", loop.stop, loop.start)
        first = _chunk_end(loop.start, extent, chunk)
        last = _chunk_end(loop.start, extent, _binary("+", chunk, ir.Const(1, "int64")))
        before: list[ir.Stmt] = []
        after: list[ir.Stmt] = []
        for reduction in sums:
            dtype = function.locals[reduction.name]
            parts = f"{reduction.name}_parts"
            arrays[parts] = ir.Array(parts, dtype, (ir.Const(_CHUNKS, "int64"),), local=True)
            before.append(ir.Store(parts, (chunk,), _identity(reduction, dtype), loop.line))
            after += _combined(reduction, parts, dtype, loop)
            body = _into_element(body, reduction.name, ir.Load(parts, (chunk,), dtype))
        inner = replace(loop, start=first, stop=last, body=body)
        zero, end = ir.Const(0, "int64"), ir.Const(_CHUNKS, "int64")
        return (replace(loop, var=chunk.name, start=zero, stop=end, body=(*before, inner)), *after)

    changed = _rewritten(of, paired)
    if changed is None:
        return None
    made = tuple(ir.Allocate(name, False, 1) for name in arrays)
    return replace(changed, arrays={**changed.arrays, **arrays}, body=(*made, *changed.body))


def truncated_reductions(of: Translation) -> ir.Function | None:
    """Wrong: sums and products lose their last term, other reductions the second half of theirs."""

    def shortened(loop: ir.For, verdict: Verdict, body: Body) -> Body | None:
        if not verdict.reductions or not loop.unit:
            return None
        if all(reduction.op in _IDENTITY for reduction in verdict.reductions):
            return (replace(loop, stop=_minus_one(loop.stop), body=body),)
        extent = _binary("-", loop.stop, loop.start)
        half = _binary("//", extent, ir.Const(2, "int64"))
        return (replace(loop, stop=_binary("+", loop.start, half), body=body),)

    return _rewritten(of, shortened)


HONEST = (
    Reordering("reversed loops", reversed_loops),
    Reordering("blocked sums", blocked_sums),
    Reordering("pairwise sums", pairwise_sums),
)
TRUNCATED = Reordering("truncated reduction", truncated_reductions)


# ---- shared


def _rewritten(of: Translation, on: OnLoop) -> ir.Function | None:
    """The function with ``on`` applied to every parallel loop, innermost first; None when nothing changed."""
    known, function = of.known, of.function
    changed = False

    def body(stmts: Body) -> Body:
        nonlocal changed
        result: list[ir.Stmt] = []
        for stmt in stmts:
            inner = with_bodies(stmt, body)
            verdict = known.get(id(stmt))
            instead = None
            if isinstance(stmt, ir.For) and isinstance(inner, ir.For) and verdict and verdict.parallel:
                instead = on(stmt, verdict, inner.body)
            changed = changed or instead is not None
            result.extend((inner,) if instead is None else instead)
        return tuple(result)

    new = body(function.body)
    return replace(function, body=new) if changed else None


def _scalar_sums(loop: ir.For, verdict: Verdict) -> list[Reduction]:
    """Sums and products into scalars of a loop of unit step, where no loop inside makes them already."""
    if not loop.unit:
        return []
    inside = {
        name
        for stmt in ir.statements(loop.body)
        if isinstance(stmt, (ir.For, ir.While))
        for name in ir.assigned(stmt.body)
    }
    fit = [r for r in verdict.reductions if r.index is None and r.op in _IDENTITY]
    return [reduction for reduction in fit if reduction.name not in inside]


def _binary(op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Binary(op, left, right, "int64")


def _minus_one(expr: ir.Expr) -> ir.Expr:
    return _binary("-", expr, ir.Const(1, "int64"))


def _lesser(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Select(ir.Compare("<", left, right), left, right, "int64")


def _chunk_end(start: ir.Expr, extent: ir.Expr, count: ir.Expr) -> ir.Expr:
    """Where ``count`` of the sixteen chunks of a range end; of an empty range, its start."""
    some = ir.Select(ir.Compare(">", extent, ir.Const(0, "int64")), extent, ir.Const(0, "int64"), "int64")
    done = _binary("//", _binary("*", some, count), ir.Const(_CHUNKS, "int64"))
    return _binary("+", start, done)


def _identity(reduction: Reduction, dtype: str) -> ir.Expr:
    value = _IDENTITY[reduction.op]
    whole = dtype.startswith(("int", "uint"))
    return ir.Const(int(value) if whole else value, dtype)


def _combined(reduction: Reduction, parts: str, dtype: str, loop: ir.For) -> list[ir.Stmt]:
    """The parts folded in halves onto the first, then onto the scalar."""
    result: list[ir.Stmt] = []
    width = _CHUNKS // 2
    pair = ir.Name(f"{loop.var}_pair", "int64")
    while width:
        other = ir.Load(parts, (_binary("+", pair, ir.Const(width, "int64")),), dtype)
        both = ir.Binary(reduction.op, ir.Load(parts, (pair,), dtype), other, dtype)
        store = ir.Store(parts, (pair,), both, loop.line)
        zero, end = ir.Const(0, "int64"), ir.Const(width, "int64")
        result.append(replace(loop, var=pair.name, start=zero, stop=end, body=(store,)))
        width //= 2
    first = ir.Load(parts, (ir.Const(0, "int64"),), dtype)
    whole = ir.Binary(reduction.op, ir.Name(reduction.name, dtype), first, dtype)
    result.append(ir.Assign(reduction.name, whole, loop.line))
    return result


def _renamed(body: Body, name: str, part: ir.Name) -> Body:
    """A body that reads and writes another scalar in place of ``name``."""

    def expr(node: ir.Expr) -> ir.Expr:
        return part if isinstance(node, ir.Name) and node.name == name else mapped(node, expr)

    def stmt(old: ir.Stmt) -> ir.Stmt:
        new = with_bodies(with_expressions(old, expr), lambda inner: tuple(map(stmt, inner)))
        return replace(new, name=part.name) if isinstance(new, ir.Assign) and new.name == name else new

    return tuple(map(stmt, body))


def _into_element(body: Body, name: str, element: ir.Load) -> Body:
    """A body that reads and writes an array element in place of the scalar ``name``."""

    def expr(node: ir.Expr) -> ir.Expr:
        return element if isinstance(node, ir.Name) and node.name == name else mapped(node, expr)

    def stmt(old: ir.Stmt) -> ir.Stmt:
        new = with_bodies(with_expressions(old, expr), lambda inner: tuple(map(stmt, inner)))
        if isinstance(new, ir.Assign) and new.name == name:
            return ir.Store(element.array, element.index, new.value, new.line)
        return new

    return tuple(map(stmt, body))
