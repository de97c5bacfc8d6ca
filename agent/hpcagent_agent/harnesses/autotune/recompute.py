"""Computing a value again instead of waiting for it: carried scalars, and buffers read at a shift.

``a[i] = s + t; t = s`` with ``s = b[i]*c[i]`` ties every iteration to the one before, though ``t`` is only
``b[i-1]*c[i-1]``. Where a value depends on nothing the loop changes, it is computed where it is used.
"""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import Poly, feasible
from .dependence import PURE, Analysis, Loops
from .rewrite import add, minus, rewrite


def untie(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Replaces scalars carried from one iteration to the next by their value, after one peeled iteration."""
    fresh = ir.Fresh(fn)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or stmt.step != 1 or not ir.innermost(stmt) or ir.has_raw(stmt.body):
            return None
        found = _carried_scalar(stmt)
        return None if found is None else _peeled(stmt, *found, fresh)

    for _ in range(4):  # a chain of two carried scalars (y = x; x = b[i]) takes two rounds
        new = fn.with_body(rewrite(fn.body, visit))
        if new.body == fn.body:
            break
        fn = new
    return fn


def _carried_scalar(loop: ir.Loop) -> tuple[str, int, ir.Expr] | None:
    """(scalar, place of its one assignment, value by the counter) of a scalar read before it is set."""
    changed, local = ir.writes(loop.body), ir.declared(loop.body)
    values: dict[str, ir.Expr] = {}
    for position, stmt in enumerate(loop.body):
        if isinstance(stmt, ir.Decl) and stmt.init is not None and stmt.name not in changed:
            values[stmt.name] = ir.substitute_expr(stmt.init, values)
        if not isinstance(stmt, ir.Assign) or not isinstance(stmt.target, ir.Name):
            continue
        name = stmt.target.id
        value = ir.substitute_expr(stmt.value, values)
        before, after = loop.body[:position], loop.body[position + 1 :]
        once = name not in local and name not in ir.writes((*before, *after)) | ir.reads(after)
        if once and name in ir.reads(before) and _repeatable(value, changed | set(local)):
            return name, position, value
    return None


def _repeatable(value: ir.Expr, changed: set[str]) -> bool:
    """Whether the value may be computed again in another iteration: it uses nothing the loop changes."""
    names = ir.reads((ir.Do(value),))
    pure = all(e.fn in PURE for e in ir.walk(value) if isinstance(e, ir.Call))
    return pure and not names & changed and not any(isinstance(e, ir.Sel) for e in ir.walk(value))


def _peeled(loop: ir.Loop, name: str, position: int, value: ir.Expr, fresh: ir.Fresh) -> ir.Body:
    at = ir.Name(loop.var)
    before = ir.substitute_expr(value, {loop.var: minus(at, 1)})
    rest = ir.substitute((*loop.body[:position], *loop.body[position + 1 :]), {name: before})
    last = ir.substitute_expr(value, {loop.var: minus(loop.hi, 1)})
    names = {local: fresh(f"{local}_first") for local in ir.declared(loop.body)}
    first = ir.rename(ir.substitute(loop.body, {loop.var: loop.lo}), names)
    main = replace(loop, lo=add(loop.lo, 1), body=rest)
    final = ir.Assign(ir.Name(name), last)
    return (ir.If(ir.Bin("<", loop.lo, loop.hi), (*first, main, final)),)


def inline_buffers(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Drops buffers set by one assignment in one loop: every read computes the value again.

    Legal when each read lies inside what the loop set, and nothing the value uses is written anywhere.
    """
    for decl in [s for s in fn.body if ir.is_allocation(s)]:
        assert isinstance(decl, ir.Decl)
        fn = _inline_one(fn, analysis, decl)
    return fn


def _inline_one(fn: ir.Function, analysis: Analysis, decl: ir.Decl) -> ir.Function:
    rest = tuple(s for s in fn.body if s != decl and not ir.is_release(s, decl.name))
    maker = _maker(rest, analysis, decl.name)
    if maker is None or ir.has_raw(rest):
        return fn
    place, loop, offset, value = maker
    later = rest[place + 1 :]
    changed = ir.writes(rest) - {decl.name}
    if ir.reads((ir.Do(value),)) & (changed | set(ir.declared(rest))) or decl.name in ir.reads(
        rest[: place + 1]
    ):
        return fn
    if not all(
        _inside(analysis, loop, outer, flat, offset) for outer, flat in _reads_of(later, analysis, decl.name)
    ):
        return fn

    def use(expr: ir.Expr) -> ir.Expr | None:
        if isinstance(expr, ir.Sub) and expr.array == decl.name:
            index = minus(ir.map_expr(expr.index, use), offset)
            return ir.substitute_expr(value, {loop.var: index})
        return None

    body = tuple(s for s in loop.body if not (isinstance(s, ir.Assign) and decl.name in ir.writes((s,))))
    kept = (replace(loop, body=body),) if body else ()
    return fn.with_body((*rest[:place], *kept, *ir.map_body(later, use)))


def _maker(body: ir.Body, analysis: Analysis, array: str) -> tuple[int, ir.Loop, int, ir.Expr] | None:
    """(place, loop, offset, value) of the only write: ``array[var + offset] = value`` in a top-level loop."""
    writers = [k for k, s in enumerate(body) if array in ir.writes((s,))]
    if len(writers) != 1 or not isinstance(loop := body[writers[0]], ir.Loop) or loop.step != 1:
        return None
    writes = [s for s in ir.statements(loop.body) if isinstance(s, ir.Assign) and array in ir.writes((s,))]
    if len(writes) != 1 or writes[0] not in loop.body or not isinstance(target := writes[0].target, ir.Sub):
        return None
    flat = analysis.poly(target.index, (loop,))
    offset = None if flat is None else (flat - Poly.name(loop.var)).constant
    cheap = all(e.fn == "fabs" for e in ir.walk(writes[0].value) if isinstance(e, ir.Call))
    return (writers[0], loop, offset, writes[0].value) if cheap and offset is not None else None


def _reads_of(body: ir.Body, analysis: Analysis, array: str) -> list[tuple[Loops, Poly | None]]:
    """The loops around, and the subscript of, every read; a subscript of None is unknown."""
    found = [access for access in analysis.accesses(body, ()) if access.array == array]
    return [(access.loops, access.flat if access.dims != () else None) for access in found]


def _inside(analysis: Analysis, loop: ir.Loop, outer: Loops, flat: Poly | None, offset: int) -> bool:
    """Whether a read at ``flat`` is always one of the elements the loop set."""
    lo, hi = analysis.poly(loop.lo, ()), analysis.poly(loop.hi, ())
    if flat is None or lo is None or hi is None:
        return False
    domain = analysis.domain(outer)
    below, above = lo + offset - flat - 1, flat - hi - offset
    return not feasible([*domain, below]) and not feasible([*domain, above])
