"""The typed form back to C text."""

from __future__ import annotations

from . import ir

_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_PRECEDENCE = {op: level + 2 for level, ops in enumerate(_LEVELS) for op in ops.split()}
_UNARY, _PRIMARY = 20, 30
_MIXED = {"&", "|", "^", "<<", ">>", "&&", "||"}


def function(fn: ir.Function) -> str:
    """A whole translation unit."""
    lines = ["#include <stdint.h>"]
    lines += [line for line in fn.includes if line != lines[0]]
    for helper in fn.helpers:
        lines += ["", helper.rstrip()]
    lines += ["", fn.signature, "{", *body(fn.body, 1), "}"]
    return "\n".join(lines) + "\n"


def body(stmts: ir.Body, depth: int) -> list[str]:
    """The lines of some statements."""
    pad = "    " * depth
    lines: list[str] = []
    for stmt in stmts:
        match stmt:
            case ir.Loop():
                lines += _loop(stmt, depth)
            case ir.If(cond, then, orelse):
                lines += [f"{pad}if ({expr(cond)}) {{", *body(then, depth + 1)]
                if orelse:
                    lines += [f"{pad}}} else {{", *body(orelse, depth + 1)]
                lines.append(f"{pad}}}")
            case ir.Raw(text):
                lines += [pad + line for line in text.splitlines()]
            case _:
                lines.append(pad + _simple(stmt))
    return lines


def _simple(stmt: ir.Stmt) -> str:
    match stmt:
        case ir.Decl(type_, name, init, extent):
            space = "" if type_.endswith("*") else " "
            size = f"[{extent}]" if extent else ""
            start = "" if init is None else f" = {expr(init)}"
            return f"{type_}{space}{name}{size}{start};"
        case ir.Assign(target, value):
            return f"{expr(target)} = {expr(value)};"
        case ir.Do(value):
            return f"{expr(value)};"
        case _:
            raise TypeError(f"not a simple statement: {stmt}")


def _loop(loop: ir.Loop, depth: int) -> list[str]:
    pad = "    " * depth
    compare = "<" if loop.step > 0 else ">"
    steps = {1: f"{loop.var}++", -1: f"{loop.var}--"}
    sign = "+=" if loop.step > 0 else "-="
    step = steps.get(loop.step, f"{loop.var} {sign} {abs(loop.step)}")
    bound = _wrap(loop.hi, _PRECEDENCE["<"] + 1)
    lines = [f"{pad}{loop.pragma}"] if loop.pragma else []
    lines.append(f"{pad}for (int64_t {loop.var} = {expr(loop.lo)}; {loop.var} {compare} {bound}; {step}) {{")
    return [*lines, *body(loop.body, depth + 1), f"{pad}}}"]


def expr(node: ir.Expr) -> str:
    """One expression, with the parentheses it needs and those that compilers warn about."""
    return _expr(node)[0]


def _expr(node: ir.Expr) -> tuple[str, int]:
    match node:
        case ir.Num(text):
            return text, _PRIMARY
        case ir.Name(name):
            return name, _PRIMARY
        case ir.Sub(array, index):
            return f"{array}[{expr(index)}]", _PRIMARY
        case ir.Call(fn, args):
            return f"{fn}({', '.join(expr(arg) for arg in args)})", _PRIMARY
        case ir.Un(op, operand):
            inner = _wrap(operand, _UNARY)
            gap = " " if inner.startswith(op) else ""
            return f"{op}{gap}{inner}", _UNARY
        case ir.Cast(type_, operand):
            return f"({type_}){_wrap(operand, _UNARY)}", _UNARY
        case ir.Sel(cond, yes, no):
            return f"{_wrap(cond, 2)} ? {_wrap(yes, 2)} : {_wrap(no, 2)}", 1
        case ir.Bin(op, left, right):
            level = _PRECEDENCE[op]
            return f"{_side(left, op, level)} {op} {_side(right, op, level + 1)}", level
    raise TypeError(f"not an expression: {node}")


def _side(node: ir.Expr, op: str, level: int) -> str:
    mixed = isinstance(node, ir.Bin) and node.op != op and (op in _MIXED or node.op in _MIXED)
    return f"({expr(node)})" if mixed else _wrap(node, level)


def _wrap(node: ir.Expr, level: int) -> str:
    text, own = _expr(node)
    return text if own >= level else f"({text})"
