"""Keeping array elements in scalars: those a loop does not move, and those set one iteration before."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import Poly
from .dependence import Access, Analysis, Loops
from .rewrite import element_type, rewrite


def keep_in_scalars(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """In every innermost loop: elements the counter does not move, and elements set one iteration before."""
    fresh = ir.Fresh(fn)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or not ir.innermost(stmt) or ir.has_raw(stmt.body):
            return None
        before, loop, after = _promote(fn, analysis, stmt, outer, fresh)
        carried, loop = _carry(fn, analysis, loop, outer, fresh)
        head = (*before, *carried)
        if not head:
            return None
        nonempty = ir.Bin("<" if loop.step > 0 else ">", loop.lo, loop.hi)
        return (ir.If(nonempty, (*head, loop, *after)),)

    return fn.with_body(rewrite(fn.body, visit))


def _promote(
    fn: ir.Function, analysis: Analysis, loop: ir.Loop, outer: Loops, fresh: ir.Fresh
) -> tuple[ir.Body, ir.Loop, ir.Body]:
    """Loads before the loop, the loop, stores after it, for elements whose subscript lacks the counter."""
    accesses = analysis.accesses((loop,), outer)
    inside = [a for a in accesses if a.loops]
    local = set(ir.declared(loop.body))
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    for flat, array in _fixed_elements(inside, loop.var, local):
        type_ = element_type(fn, array)
        mine = [a for a in inside if a.array == array and a.flat == flat]
        others = [a for a in inside if a.array == array and a.flat != flat]
        written = any(a.write for a in mine)
        varies = any(a.write for a in inside if a.array == array)
        if not varies or not _certain(loop, analysis, array, flat, outer):
            continue  # read-only elements the compiler hoists itself
        if type_ is None or any(analysis.conflict(m, o, outer) for m in mine for o in others):
            continue
        name = fresh(f"{array}_kept")
        element = _spelling(loop, analysis, array, flat, outer)
        before.append(ir.Decl(type_, name, element))
        loop = _replace_element(loop, analysis, array, flat, outer, name)
        if written:
            after.append(ir.Assign(element, ir.Name(name)))
    return tuple(before), loop, tuple(after)


def _fixed_elements(accesses: list[Access], var: str, local: set[str]) -> list[tuple[Poly, str]]:
    found: list[tuple[Poly, str]] = []
    for access in accesses:
        if access.flat is None or access.dims == () or access.array in local or var in access.flat.names():
            continue
        if (access.flat, access.array) not in found:
            found.append((access.flat, access.array))
    return found


def _is_element(node: ir.Expr, analysis: Analysis, array: str, flat: Poly, loops: Loops) -> bool:
    return isinstance(node, ir.Sub) and node.array == array and analysis.poly(node.index, loops) == flat


def _spelling(loop: ir.Loop, analysis: Analysis, array: str, flat: Poly, outer: Loops) -> ir.Sub:
    """The element as the source spells it."""
    for stmt in ir.statements(loop.body):
        targets = (stmt.target,) if isinstance(stmt, ir.Assign) else ()
        for expr in (*targets, *ir.expressions(stmt)):
            for node in ir.walk(expr):
                if isinstance(node, ir.Sub) and _is_element(node, analysis, array, flat, (*outer, loop)):
                    return node
    raise ValueError(f"{array} is not accessed in the loop")


def _certain(loop: ir.Loop, analysis: Analysis, array: str, flat: Poly, outer: Loops) -> bool:
    """Whether every iteration touches the element, whatever the data, so that one touch more is safe."""
    for stmt in loop.body:
        if not isinstance(stmt, ir.Assign | ir.Decl | ir.If):
            continue
        conditional = any(
            isinstance(e, ir.Sel) or (isinstance(e, ir.Bin) and e.op in ("&&", "||"))
            for top in ir.expressions(stmt)
            for e in ir.walk(top)
        )
        targets = (stmt.target,) if isinstance(stmt, ir.Assign) else ()
        sources = targets if conditional else (*targets, *ir.expressions(stmt))
        for node in (n for top in sources for n in ir.walk(top)):
            if _is_element(node, analysis, array, flat, (*outer, loop)):
                return True
    return False


def _replace_element(
    loop: ir.Loop, analysis: Analysis, array: str, flat: Poly, outer: Loops, name: str
) -> ir.Loop:
    def change(expr: ir.Expr) -> ir.Expr | None:
        return ir.Name(name) if _is_element(expr, analysis, array, flat, (*outer, loop)) else None

    return replace(loop, body=ir.map_body(loop.body, change))


def _carry(
    fn: ir.Function, analysis: Analysis, loop: ir.Loop, outer: Loops, fresh: ir.Fresh
) -> tuple[ir.Body, ir.Loop]:
    """Replaces a read of what the iteration before wrote by a scalar: ``x[i-1]`` beside ``x[i] = ...``."""
    before: list[ir.Stmt] = []
    around = (*outer, loop)
    while (found := _find_carry(fn, analysis, loop, outer)) is not None:
        position, target, flat = found
        before_flat = flat.substitute(loop.var, Poly.name(loop.var) - loop.step)
        type_ = element_type(fn, target.array) or "double"
        held, value = fresh(f"{target.array}_before"), fresh(f"{target.array}_now")
        source = _spelling(loop, analysis, target.array, before_flat, outer)
        before.append(ir.Decl(type_, held, ir.substitute_expr(source, {loop.var: loop.lo})))
        loop = _replace_element(loop, analysis, target.array, before_flat, outer, held)
        stmt = loop.body[position]
        assert isinstance(stmt, ir.Assign)
        middle = (ir.Decl(type_, value, stmt.value), ir.Assign(target, ir.Name(value)))
        rest = _forward(loop.body[position + 1 :], analysis, target.array, flat, around, value)
        body = (*loop.body[:position], *middle, *rest, ir.Assign(ir.Name(held), ir.Name(value)))
        loop = replace(loop, body=body)
        around = (*outer, loop)
    return tuple(before), loop


def _find_carry(
    fn: ir.Function, analysis: Analysis, loop: ir.Loop, outer: Loops
) -> tuple[int, ir.Sub, Poly] | None:
    """(place of the write in the body, target, subscript) of an element read again one iteration later."""
    around = (*outer, loop)
    accesses = [a for a in analysis.accesses((loop,), outer) if a.loops]
    if any(a.array == "*" for a in accesses):
        return None
    for position, stmt in enumerate(loop.body):
        if not isinstance(stmt, ir.Assign) or not isinstance(stmt.target, ir.Sub):
            continue
        flat = analysis.poly(stmt.target.index, around)
        array = stmt.target.array
        if flat is None or loop.var not in flat.names() or element_type(fn, array) is None:
            continue
        before = flat.substitute(loop.var, Poly.name(loop.var) - loop.step)
        reads = [a for a in accesses if a.array == array and not a.write and a.flat == before]
        same = [a for a in accesses if a.array == array and a.write and a.flat == flat]
        others = [a for a in accesses if a.array == array and a.write and a.flat != flat]
        if len(same) != 1 or not reads or not _certain(loop, analysis, array, before, outer):
            continue
        if not any(_between(analysis, w, reads[0], loop, outer) for w in (*others, *same)):
            return position, stmt.target, flat
    return None


def _between(analysis: Analysis, write: Access, read: Access, loop: ir.Loop, outer: Loops) -> bool:
    """Whether another write may hit the element between the write one iteration before and the read.

    The write of that iteration itself (distance exactly one) is the wanted one and shows as no other element.
    """
    sign = 1 if loop.step > 0 else -1
    own = write.flat is not None and read.flat is not None and loop.var in write.flat.names()
    wanted = own and write.flat.substitute(loop.var, Poly.name(loop.var) - loop.step) == read.flat  # type: ignore[union-attr]
    nearest = 0 if wanted else abs(loop.step)
    return analysis.conflict(
        write,
        read,
        outer,
        lambda v1, v2: [(v2 - v1) * sign, (v1 - v2) * sign + nearest],
    )


def _forward(body: ir.Body, analysis: Analysis, array: str, flat: Poly, loops: Loops, name: str) -> ir.Body:
    """Reads of the element just written, up to the next write of that array, come from the scalar."""

    def change(expr: ir.Expr) -> ir.Expr | None:
        return ir.Name(name) if _is_element(expr, analysis, array, flat, loops) else None

    found: list[ir.Stmt] = []
    for position, stmt in enumerate(body):
        if isinstance(stmt, ir.Assign | ir.Decl):
            new = (
                ir.map_body((stmt,), lambda e: change(e))[0]
                if isinstance(stmt, ir.Decl)
                else replace(stmt, value=ir.map_expr(stmt.value, change))
            )
            found.append(new)
            if array in ir.writes((stmt,)):
                return (*found, *body[position + 1 :])
        else:
            return (*found, *body[position:])
    return tuple(found)
