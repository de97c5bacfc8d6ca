"""Helpers that every transformation uses: walking sites, small expressions, types of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import ir
from .affine import to_expr, to_poly
from .dependence import Loops

Visit = Callable[[ir.Stmt, Loops], ir.Body | None]


def rewrite(body: ir.Body, visit: Visit, outer: Loops = ()) -> ir.Body:
    """Offers every statement, outside in, with the loops around it; an answer replaces it, unentered."""
    found: list[ir.Stmt] = []
    for stmt in body:
        new = visit(stmt, outer)
        if new is not None:
            found += new
        elif isinstance(stmt, ir.Loop):
            inner = rewrite(stmt.body, visit, (*outer, stmt))
            found.append(ir.Loop(stmt.var, stmt.lo, stmt.hi, stmt.step, inner, stmt.pragma, stmt.floor))
        elif isinstance(stmt, ir.If):
            found.append(
                ir.If(stmt.cond, rewrite(stmt.then, visit, outer), rewrite(stmt.orelse, visit, outer))
            )
        else:
            found.append(stmt)
    return tuple(found)


def loops_with_context(body: ir.Body, outer: Loops = ()) -> Iterator[tuple[ir.Loop, Loops]]:
    """Every loop with the loops around it."""
    for stmt in body:
        if isinstance(stmt, ir.Loop):
            yield stmt, outer
            yield from loops_with_context(stmt.body, (*outer, stmt))
        elif isinstance(stmt, ir.If):
            yield from loops_with_context((*stmt.then, *stmt.orelse), outer)


def num(value: int) -> ir.Num:
    return ir.Num(str(value))


def add(left: ir.Expr, right: ir.Expr | int) -> ir.Expr:
    """The sum, folded where both sides are affine."""
    if left == num(0) and isinstance(right, ir.Bin):
        return right
    return _folded(ir.Bin("+", left, num(right) if isinstance(right, int) else right))


def minus(left: ir.Expr, right: ir.Expr | int) -> ir.Expr:
    """The difference, folded where both sides are affine."""
    return _folded(ir.Bin("-", left, num(right) if isinstance(right, int) else right))


def _folded(expr: ir.Expr) -> ir.Expr:
    poly = to_poly(expr, lambda name: True)
    return expr if poly is None else to_expr(poly)


def smaller(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return left if left == right else ir.Sel(ir.Bin("<", left, right), left, right)


def larger(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return left if left == right else ir.Sel(ir.Bin(">", left, right), left, right)


def element_type(fn: ir.Function, array: str) -> str | None:
    """The C type of an array's elements; None when it is not known."""
    if array in fn.pointers:
        return fn.pointers[array]
    decl = ir.declared(fn.body).get(array)
    if decl is None or not (decl.pointer or decl.extent):
        return None
    return decl.type.split("*")[0].replace("const", "").strip()


def scalar_type(fn: ir.Function, name: str) -> str | None:
    """The C type of a scalar; None when it is not known."""
    if name in fn.scalars:
        return fn.scalars[name]
    decl = ir.declared(fn.body).get(name)
    return None if decl is None or decl.pointer or decl.extent else decl.type
