"""Expressions of the typed form as the reference would spell them, for messages to people."""

from __future__ import annotations

from hpcagent_bench.translators import ir

_LEVELS = {"or": 1, "and": 2, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "**": 12}
_LEVELS |= dict.fromkeys(("*", "/", "//", "%"), 10) | dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 4)
_SELECT, _UNARY, _PRIMARY = 0, 11, 13


def text(expr: ir.Expr, least: int = 0) -> str:
    """The expression, in parentheses when it binds less tightly than ``least``; conversions are left out."""
    written, level = _render(expr)
    return written if level >= least else f"({written})"


def element(array: str, index: tuple[ir.Expr, ...]) -> str:
    return f"{array}[{', '.join(text(axis) for axis in index)}]"


def _render(expr: ir.Expr) -> tuple[str, int]:
    match expr:
        case ir.Const():
            return str(expr.value), _UNARY if str(expr.value).startswith("-") else _PRIMARY
        case ir.Name():
            return expr.name, _PRIMARY
        case ir.Load():
            return element(expr.array, expr.index), _PRIMARY
        case ir.Cast():
            return _render(expr.operand)
        case ir.Unary():
            sign = "not " if expr.op == "not" else expr.op
            return f"{sign}{text(expr.operand, _UNARY)}", _UNARY
        case ir.Binary() | ir.Compare():
            level = _LEVELS[expr.op]
            return f"{text(expr.left, level)} {expr.op} {text(expr.right, level + 1)}", level
        case ir.Logical():
            level = _LEVELS[expr.op]
            return f" {expr.op} ".join(text(operand, level + 1) for operand in expr.operands), level
        case ir.Select():
            parts = [text(part, _SELECT + 1) for part in (expr.then, expr.test, expr.orelse)]
            return f"{parts[0]} if {parts[1]} else {parts[2]}", _SELECT
        case ir.Call():
            return f"{expr.function}({', '.join(text(arg) for arg in expr.args)})", _PRIMARY
        case ir.Invoke():
            return f"{expr.helper}({', '.join(text(arg) for arg in expr.args)})", _PRIMARY
