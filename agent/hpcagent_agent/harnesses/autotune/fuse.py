"""Fusing adjacent loops, and turning the buffers between them into scalars."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .dependence import Analysis, Loops
from .rewrite import element_type, loops_with_context, rewrite


def fuse(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Merges loops over the same range where the dependences allow it, then contracts what became local."""
    fn = fn.with_body(_fuse_body(fn.body, analysis, (), ir.Fresh(fn)))
    return contract(fn, analysis)


def _fuse_body(body: ir.Body, analysis: Analysis, outer: Loops, fresh: ir.Fresh) -> ir.Body:
    stmts = list(body)
    position = 0
    while position < len(stmts):
        current = stmts[position]
        if isinstance(current, ir.Loop):
            earlier = _partner(stmts, position, analysis, outer)
            if earlier is not None:
                first = stmts[earlier]
                assert isinstance(first, ir.Loop)
                merged = _merge(first, current, fresh)
                stmts = stmts[:earlier] + stmts[earlier + 1 : position] + [merged] + stmts[position + 1 :]
                position -= 1
                continue
        position += 1
    return tuple(
        replace(s, body=_fuse_body(s.body, analysis, (*outer, s), fresh)) if isinstance(s, ir.Loop) else s
        for s in stmts
    )


def _partner(stmts: list[ir.Stmt], position: int, analysis: Analysis, outer: Loops) -> int | None:
    """The earlier loop that the one at ``position`` may join; what lies between moves before it."""
    current = stmts[position]
    assert isinstance(current, ir.Loop)
    for earlier in range(position - 1, -1, -1):
        first = stmts[earlier]
        if isinstance(first, ir.Loop) and _same_range(first, current, analysis, outer):
            between = stmts[earlier + 1 : position]
            moves = not any(_tied(first, other) for other in between)
            if moves and not analysis.blocks_fusion(first, current, outer):
                return earlier
        if isinstance(first, ir.Raw):
            return None
    return None


def _same_range(first: ir.Loop, second: ir.Loop, analysis: Analysis, outer: Loops) -> bool:
    if first.step != second.step or first.pragma != second.pragma:
        return False
    for one, two in ((first.lo, second.lo), (first.hi, second.hi)):
        a, b = analysis.poly(one, outer), analysis.poly(two, outer)
        if a is None or a != b:
            return False
    return True


def _tied(first: ir.Stmt, other: ir.Stmt) -> bool:
    """Whether the order of two statements may matter, judged by names alone."""
    if isinstance(other, ir.Raw | ir.Do) or ir.has_raw((first, other)):
        return True
    ones, twos = (
        ir.writes((first,)) | set(ir.declared((first,))),
        ir.writes((other,)) | set(ir.declared((other,))),
    )
    return bool(ones & (ir.reads((other,)) | twos) or ir.reads((first,)) & twos)


def _merge(first: ir.Loop, second: ir.Loop, fresh: ir.Fresh) -> ir.Loop:
    clash = set(ir.declared(first.body)) & set(ir.declared(second.body))
    names = {name: fresh(name) for name in sorted(clash)}
    if second.var != first.var:
        names[second.var] = first.var
    return replace(first, body=(*first.body, *ir.rename(second.body, names)))


def contract(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Buffers that each iteration writes before it reads, at one and the same subscript, become scalars."""
    for decl in [s for s in fn.body if ir.is_allocation(s)]:
        assert isinstance(decl, ir.Decl)
        fn = _contract_one(fn, analysis, decl)
    return fn


def _contract_one(fn: ir.Function, analysis: Analysis, decl: ir.Decl) -> ir.Function:
    rest = tuple(s for s in fn.body if s != decl and not ir.is_release(s, decl.name))
    type_ = element_type(fn, decl.name)
    home = _home(rest, analysis, decl.name)
    if home is None or type_ is None or ir.has_raw(rest):
        return fn
    loop, position = home
    name = ir.Fresh(fn)(f"{decl.name}_here")

    def use(expr: ir.Expr) -> ir.Expr | None:
        return ir.Name(name) if isinstance(expr, ir.Sub) and expr.array == decl.name else None

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if stmt is not loop:
            return None
        write = loop.body[position]
        assert isinstance(write, ir.Assign)
        body = (
            *loop.body[:position],
            ir.Decl(type_, name, write.value),
            *ir.map_body(loop.body[position + 1 :], use),
        )
        return (replace(loop, body=body),)

    return fn.with_body(rewrite(rest, visit))


def _home(body: ir.Body, analysis: Analysis, array: str) -> tuple[ir.Loop, int] | None:
    """The loop whose body holds every access, and the place of the write that comes first in it."""
    total = [a for a in analysis.accesses(body, ()) if a.array == array]
    for loop, outer in loops_with_context(body):
        inside = [a for a in analysis.accesses((loop,), outer) if a.array == array and a.loops]
        if len(inside) != len(total) or len({a.flat for a in inside}) != 1 or inside[0].flat is None:
            continue
        for position, stmt in enumerate(loop.body):
            if array in ir.reads((stmt,)):
                break
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Sub) and stmt.target.array == array:
                return loop, position
            if array in ir.writes((stmt,)):
                break
    return None
