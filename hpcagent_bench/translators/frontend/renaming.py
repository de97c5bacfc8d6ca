"""Names that the lowering made up, put in order: what only a discarded attempt used is free again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hpcagent_bench.translators import ir


def tidy(made: Mapping[str, str], used: set[str]) -> dict[str, str]:
    """A new name for each of ``used`` that was ``made`` with a number though its plain name is free."""
    names: dict[str, str] = {}
    taken = used - made.keys()
    for name, wanted in made.items():
        if name not in used:
            continue
        chosen, count = wanted, 1
        while chosen in taken:
            count += 1
            chosen = f"{wanted}{count}"
        taken.add(chosen)
        if chosen != name:
            names[name] = chosen
    return names


def renamed(body: tuple[ir.Stmt, ...], names: Mapping[str, str]) -> tuple[ir.Stmt, ...]:
    """A body with other names for some scalars and arrays."""
    return tuple(_statement(stmt, names) for stmt in body) if names else body


def _statement(stmt: ir.Stmt, names: Mapping[str, str]) -> ir.Stmt:
    match stmt:
        case ir.Assign():
            name, value = names.get(stmt.name, stmt.name), expression(stmt.value, names)
            return replace(stmt, name=name, value=value)
        case ir.Store():
            index = tuple(expression(part, names) for part in stmt.index)
            array, value = names.get(stmt.array, stmt.array), expression(stmt.value, names)
            return replace(stmt, array=array, index=index, value=value)
        case ir.For():
            start, stop, step = (expression(part, names) for part in (stmt.start, stmt.stop, stmt.step))
            var, body = names.get(stmt.var, stmt.var), renamed(stmt.body, names)
            return replace(stmt, var=var, start=start, stop=stop, step=step, body=body)
        case ir.While():
            return replace(stmt, test=expression(stmt.test, names), body=renamed(stmt.body, names))
        case ir.If():
            body, orelse = renamed(stmt.body, names), renamed(stmt.orelse, names)
            return replace(stmt, test=expression(stmt.test, names), body=body, orelse=orelse)
        case ir.Allocate():
            return replace(stmt, array=names.get(stmt.array, stmt.array))
        case ir.Return() if stmt.value is not None:
            return replace(stmt, value=expression(stmt.value, names))
        case _:
            return stmt


def expression(expr: ir.Expr, names: Mapping[str, str]) -> ir.Expr:
    """An expression with other names for some scalars and arrays."""
    match expr:
        case ir.Const():
            return expr
        case ir.Name():
            return replace(expr, name=names.get(expr.name, expr.name))
        case ir.Load():
            index = tuple(expression(part, names) for part in expr.index)
            return replace(expr, array=names.get(expr.array, expr.array), index=index)
        case ir.Cast() | ir.Unary():
            return replace(expr, operand=expression(expr.operand, names))
        case ir.Binary() | ir.Compare():
            return replace(expr, left=expression(expr.left, names), right=expression(expr.right, names))
        case ir.Logical():
            return replace(expr, operands=tuple(expression(part, names) for part in expr.operands))
        case ir.Select():
            test, then = expression(expr.test, names), expression(expr.then, names)
            return replace(expr, test=test, then=then, orelse=expression(expr.orelse, names))
        case ir.Call() | ir.Invoke():
            return replace(expr, args=tuple(expression(part, names) for part in expr.args))
