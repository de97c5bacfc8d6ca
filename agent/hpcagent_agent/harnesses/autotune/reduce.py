"""Loops that fold many elements into a few scalars: sums, products, extremes, and rare updates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from . import ir
from .dependence import PURE, Analysis, Loops
from .rewrite import add, minus, num, rewrite, scalar_type

_IDENTITY = {"+": "0", "*": "1"}
GUARD_BLOCK, GUARD_BLOCK_IN_NEST = 1024, 256
"""Elements tested at a stretch; rows of a nest are shorter than vectors."""


def reductions(body: ir.Body, names: Iterable[str]) -> dict[str, str]:
    """Scalars of ``names`` that the statements only fold into: name to ``+``, ``*``, ``max`` or ``min``."""
    found: dict[str, str] = {}
    for name in names:
        kinds = _kinds(body, name)
        if len(kinds) == 1 and (kind := kinds.pop()) is not None:
            found[name] = kind
    return found


def _kinds(body: ir.Body, name: str) -> set[str | None]:
    """How the statements use a scalar; None stands for any use that is not a fold."""
    kinds: set[str | None] = set()
    for stmt in body:
        match stmt:
            case ir.If(cond, (ir.Assign(ir.Name(target), value),), ()) if target == name:
                kinds.add(_extreme(cond, value, name) or _guarded_fold(cond, value, name))
            case ir.If(cond, then, orelse):
                kinds |= {None} if _uses(cond, name) else set()
                kinds |= _kinds(then, name) | _kinds(orelse, name)
            case ir.Assign(ir.Name(target), value) if target == name:
                kinds.add(_fold(value, name))
            case _:
                if name in ir.reads((stmt,)) | ir.writes((stmt,)) or isinstance(stmt, ir.Raw):
                    kinds.add(None)
    return kinds


def _uses(expr: ir.Expr, name: str) -> bool:
    return ir.Name(name) in ir.walk(expr)


def _guarded_fold(cond: ir.Expr, value: ir.Expr, name: str) -> str | None:
    return None if _uses(cond, name) else _fold(value, name)


def _fold(value: ir.Expr, name: str) -> str | None:
    """The kind of ``name = value``."""
    if isinstance(value, ir.Sel):
        if value.no == ir.Name(name):
            return _extreme(value.cond, value.yes, name)
        return None
    for kind, ops in (("+", "+-"), ("*", "*")):
        if _chain(value, name, ops):
            return kind
    return None


def _chain(value: ir.Expr, name: str, ops: str) -> bool:
    """``name op a op b ...``, or ``a op name``; the name occurs once and is never subtracted."""
    if not isinstance(value, ir.Bin) or value.op not in ops:
        return False
    left, right = value.left, value.right
    if _uses(right, name):
        return value.op in "+*" and right == ir.Name(name) and not _uses(left, name)
    return left == ir.Name(name) or _chain(left, name, ops)


def _extreme(cond: ir.Expr, value: ir.Expr, name: str) -> str | None:
    """``if (value > name) name = value`` and its mirror images."""
    if not isinstance(cond, ir.Bin) or _uses(value, name):
        return None
    if (cond.left, cond.right) == (value, ir.Name(name)):
        return {">": "max", "<": "min"}.get(cond.op)
    if (cond.right, cond.left) == (value, ir.Name(name)):
        return {"<": "max", ">": "min"}.get(cond.op)
    return None


def loop_reductions(loop: ir.Loop) -> dict[str, str]:
    """The reductions of a loop over scalars that outlive its iterations."""
    local = set(ir.declared(loop.body))
    scalars = {
        s.target.id
        for s in ir.statements(loop.body)
        if isinstance(s, ir.Assign) and isinstance(s.target, ir.Name)
    }
    return reductions(loop.body, sorted(scalars - local))


def clauses(found: dict[str, str]) -> str:
    """The ``reduction`` clauses of a pragma."""
    kinds: dict[str, list[str]] = {}
    for name, kind in sorted(found.items()):
        kinds.setdefault(kind, []).append(name)
    return "".join(f" reduction({kind}:{', '.join(names)})" for kind, names in sorted(kinds.items()))


def streams(fn: ir.Function, analysis: Analysis, count: int) -> ir.Function:
    """Cuts the range of every reduction into ``count`` parts walked side by side, with a scalar each.

    Legal when the iterations share nothing but reductions. Sums are re-associated; extremes stay exact.
    """
    fresh = ir.Fresh(fn)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or not ir.innermost(stmt) or stmt.step < 1 or ir.has_raw(stmt.body):
            return None
        found = loop_reductions(stmt)
        types = {name: scalar_type(fn, name) for name in found}
        if not found or None in types.values() or analysis.carries(stmt, outer, found):
            return None
        return _side_by_side(stmt, found, {n: t for n, t in types.items() if t}, count, fresh)

    return fn.with_body(rewrite(fn.body, visit))


def _side_by_side(
    loop: ir.Loop, found: dict[str, str], types: dict[str, str], count: int, fresh: ir.Fresh
) -> ir.Body:
    part = fresh("part")
    length = ir.Bin("/", minus(loop.hi, loop.lo), num(count * loop.step))
    before: list[ir.Stmt] = [ir.Decl("const int64_t", part, length)]
    after: list[ir.Stmt] = []
    body: list[ir.Stmt] = list(loop.body)
    folded = dict(found)
    for k in range(1, count):
        names = {name: fresh(f"{name}_{k}") for name in found}
        names |= {name: fresh(f"{name}_{k}") for name in ir.declared(loop.body)}
        offset = ir.Bin("*", num(k * loop.step), ir.Name(part))
        moved = ir.substitute(loop.body, {loop.var: add(ir.Name(loop.var), offset)})
        body += ir.rename(moved, names)
        folded |= {names[name]: kind for name, kind in found.items()}
        for name, kind in found.items():
            start = ir.Name(name) if kind in ("max", "min") else ir.Num(_IDENTITY[kind])
            before.append(ir.Decl(types[name], names[name], start))
            after.append(_combine(name, names[name], kind))
    length_of_part = ir.Bin("*", num(loop.step), ir.Name(part))
    done = ir.Bin("*", num(count * loop.step), ir.Name(part))
    hi = add(loop.lo, length_of_part)
    main = replace(loop, hi=hi, body=tuple(body), pragma=f"#pragma omp simd{clauses(folded)}")
    rest = replace(loop, lo=add(loop.lo, done), floor=loop.lo)
    return (*before, main, *after, rest)


def _combine(name: str, other: str, kind: str) -> ir.Stmt:
    if kind in _IDENTITY:
        return ir.Assign(ir.Name(name), ir.Bin(kind, ir.Name(name), ir.Name(other)))
    better = ir.Bin(">" if kind == "max" else "<", ir.Name(other), ir.Name(name))
    return ir.Assign(ir.Name(name), ir.Sel(better, ir.Name(other), ir.Name(name)))


def guard(fn: ir.Function, analysis: Analysis, count: int) -> ir.Function:
    """Skips blocks where nothing happens: ``if (a[i] > best) {...}`` runs only where it may fire.

    A block whose condition holds for no element, given the scalars as they stand before it, changes nothing,
    so leaving it out is exact, ties, NaN and all. The test vectorises; the updates stay in their order.
    """
    fresh = ir.Fresh(fn)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or stmt.step != 1:
            return None
        cond = _rare(stmt)
        return (
            None
            if cond is None
            else _guarded(stmt, cond, count, GUARD_BLOCK_IN_NEST if outer else GUARD_BLOCK, fresh)
        )

    return fn.with_body(rewrite(fn.body, visit))


def _rare(loop: ir.Loop) -> ir.Expr | None:
    """The condition under which an iteration does anything, when it depends on what the updates set."""
    *lead, last = loop.body or (ir.Raw(""),)
    if isinstance(last, ir.Assign) and isinstance(last.value, ir.Sel) and last.value.no == last.target:
        last = ir.If(last.value.cond, (ir.Assign(last.target, last.value.yes),))
    if not isinstance(last, ir.If) or last.orelse or ir.has_raw(loop.body) or not ir.innermost(loop):
        return None
    values: dict[str, ir.Expr] = {}
    for stmt in lead:
        if not isinstance(stmt, ir.Decl) or stmt.init is None or stmt.name in ir.writes(loop.body):
            return None
        values[stmt.name] = ir.substitute_expr(stmt.init, values)
    cond = ir.substitute_expr(last.cond, values)
    changed = ir.writes(last.then)
    pure = all(e.fn in PURE for e in ir.walk(cond) if isinstance(e, ir.Call))
    arrays = {e.array for e in ir.walk(cond) if isinstance(e, ir.Sub)}
    known = {e.id for e in ir.walk(cond) if isinstance(e, ir.Name)}
    return cond if pure and arrays and known & changed and not arrays & changed else None


def _guarded(loop: ir.Loop, cond: ir.Expr, count: int, size: int, fresh: ir.Fresh) -> ir.Body:
    block, inner, hit = fresh(f"{loop.var}_block"), fresh(f"{loop.var}_test"), fresh("hit")
    width = size * count
    test: ir.Expr | None = None
    for k in range(count):
        one = ir.substitute_expr(cond, {loop.var: add(ir.Name(inner), k * size)})
        test = one if test is None else ir.Bin("|", test, one)
    assert test is not None
    scan = ir.Loop(
        inner,
        ir.Name(block),
        add(ir.Name(block), size),
        1,
        (ir.Assign(ir.Name(hit), ir.Bin("|", ir.Name(hit), test)),),
        pragma=f"#pragma omp simd reduction(|:{hit})",
    )
    again = replace(loop, lo=ir.Name(block), hi=add(ir.Name(block), width))
    blocks = ir.Loop(
        block,
        loop.lo,
        minus(loop.hi, width - 1),
        width,
        (ir.Decl("int64_t", hit, ir.Num("0")), scan, ir.If(ir.Name(hit), (again,))),
    )
    done = ir.Bin("*", ir.Bin("/", minus(loop.hi, loop.lo), num(width)), num(width))
    return blocks, replace(loop, lo=add(loop.lo, done), floor=loop.lo)
