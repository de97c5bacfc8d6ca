"""How numba spells values: literals, and the conversions that need not be written."""

from __future__ import annotations

import math

from hpcagent_bench.translators import ir

# how tightly operators bind
SELECT, OR, AND, NOT, RELATION, BIT_OR, BIT_XOR, BIT_AND, SHIFT, ADD, MULTIPLY, UNARY, POWER, PRIMARY = range(
    1, 15
)
LEVEL = {
    **{"*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "+": ADD, "-": ADD, "**": POWER},
    **{"<<": SHIFT, ">>": SHIFT, "&": BIT_AND, "^": BIT_XOR, "|": BIT_OR},
}
VIEWS = {"float16": "uint16", "bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}
"""The integers that formats numba lacks are stored in."""


def literal(expr: ir.Const) -> tuple[str, int]:
    value, dtype = expr.value, expr.dtype
    if dtype == "bool":
        return str(bool(value)), PRIMARY
    if ir.is_complex(dtype):
        return f"np.{dtype}({complex(value)!r})", PRIMARY
    assert not isinstance(value, complex)
    if ir.is_float(dtype):
        number = float(value)
        text = repr(number) if math.isfinite(number) else "np.nan" if number != number else "np.inf"
        text = f"-{text}" if number == -math.inf else text
    else:
        text = str(int(value))
    if dtype in ("float64", "int64"):
        return text, UNARY if text.startswith("-") else PRIMARY
    return f"np.{dtype}({text})", PRIMARY


def plain(expr: ir.Expr) -> ir.Expr:
    """A literal beside which numba compares integers of any width, so that it needs no dtype."""
    if isinstance(expr, ir.Const) and ir.is_integer(expr.dtype) and expr.dtype != "uint64":
        return ir.Const(expr.value, "int64")
    return expr


def wraps_narrow(expr: ir.Binary) -> bool:
    return expr.wraps and expr.op in ("+", "-", "*") and expr.dtype in ("int8", "int16", "int32")


def widened(dtype: str) -> bool:
    """Whether numba's operators give something wider than ``dtype``."""
    return ir.is_integer(dtype) and dtype != "int64"


def bare(expr: ir.Expr) -> ir.Expr:
    """An index without a conversion to int64, which numba makes by itself."""
    integer = isinstance(expr, ir.Cast) and expr.dtype == "int64" and ir.is_integer(expr.operand.dtype)
    return expr.operand if isinstance(expr, ir.Cast) and integer and expr.operand.dtype != "uint64" else expr


def beside(left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Operands without a conversion to float64 that the other one brings about."""
    if _to_double(right) and not _to_double(left):
        assert isinstance(right, ir.Cast)
        return left, right.operand
    if _to_double(left) and not _to_double(right):
        assert isinstance(left, ir.Cast)
        return left.operand, right
    return left, right


def _to_double(expr: ir.Expr) -> bool:
    return (
        isinstance(expr, ir.Cast)
        and expr.dtype == "float64"
        and (ir.is_integer(expr.operand.dtype) or expr.operand.dtype == "float32")
    )
