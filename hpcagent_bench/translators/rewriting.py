"""Typed forms made from others: an expression or statement with its parts put through a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hpcagent_bench.translators import ir

OnExpr = Callable[[ir.Expr], ir.Expr]


def mapped(expr: ir.Expr, on: OnExpr) -> ir.Expr:
    """The expression with its direct operands put through ``on``."""
    match expr:
        case ir.Const() | ir.Name():
            return expr
        case ir.Load():
            return replace(expr, index=tuple(map(on, expr.index)))
        case ir.Unary() | ir.Cast():
            return replace(expr, operand=on(expr.operand))
        case ir.Binary() | ir.Compare():
            return replace(expr, left=on(expr.left), right=on(expr.right))
        case ir.Logical():
            return replace(expr, operands=tuple(map(on, expr.operands)))
        case ir.Select():
            return replace(expr, test=on(expr.test), then=on(expr.then), orelse=on(expr.orelse))
        case ir.Call() | ir.Invoke():
            return replace(expr, args=tuple(map(on, expr.args)))


def with_expressions(stmt: ir.Stmt, on: OnExpr) -> ir.Stmt:
    """The statement with the expressions it evaluates itself put through ``on``."""
    match stmt:
        case ir.Assign():
            return replace(stmt, value=on(stmt.value))
        case ir.Store():
            return replace(stmt, index=tuple(map(on, stmt.index)), value=on(stmt.value))
        case ir.For():
            return replace(stmt, start=on(stmt.start), stop=on(stmt.stop), step=on(stmt.step))
        case ir.If() | ir.While():
            return replace(stmt, test=on(stmt.test))
        case ir.Return():
            return stmt if stmt.value is None else replace(stmt, value=on(stmt.value))
        case ir.Allocate() | ir.Jump():
            return stmt


def with_bodies(stmt: ir.Stmt, on: Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]]) -> ir.Stmt:
    """The statement with the bodies inside it put through ``on``."""
    match stmt:
        case ir.For() | ir.While():
            return replace(stmt, body=on(stmt.body))
        case ir.If():
            return replace(stmt, body=on(stmt.body), orelse=on(stmt.orelse))
        case _:
            return stmt
