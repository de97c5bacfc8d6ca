"""NumPy's typing of scalar operations (NEP 50): which dtype an operation computes in and what converts to it.

A value is *weak* while it is one of Python's own numbers: a literal, a loop index, a size or scalar argument
(the judge passes ``int`` and ``float``), an extent, and arithmetic among these. A weak value takes the dtype
of the NumPy values it meets; among themselves weak values are int64 and float64. Everything loaded from an
array is a NumPy scalar and keeps its dtype, so ``int8 + 1`` is int8 and wraps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcagent_bench.translators import ir

_WEAK: dict[str, bool | int | float | complex] = {"bool": True, "int": 0, "float": 0.0, "complex": 0j}
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod},
    **{
        "&": operator.and_,
        "|": operator.or_,
        "^": operator.xor,
        "<<": operator.lshift,
        ">>": operator.rshift,
    },
    "**": operator.pow,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"==": operator.eq, "!=": operator.ne},
}
_LARGEST_FOLD = 2**64


class Mismatch(ValueError):
    """NumPy has no such operation, or would raise; the text continues "... is not covered"."""


@dataclass(frozen=True)
class Operand:
    """A scalar expression and whether NumPy sees one of Python's own numbers in it."""

    expr: ir.Expr
    weak: bool = False

    @property
    def dtype(self) -> str:
        return self.expr.dtype


def python(value: bool | int | float | complex) -> Operand:
    """A literal."""
    dtype = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}[type(value)]
    return Operand(ir.Const(value, dtype), weak=True)


def kind(dtype: str) -> str:
    """``bool``, ``int``, ``float`` or ``complex``."""
    if dtype == "bool":
        return dtype
    return "int" if ir.is_integer(dtype) else "complex" if ir.is_complex(dtype) else "float"


def common(*operands: Operand) -> str:
    """The dtype that operands of an arithmetic operation are converted to."""
    strong = [np.dtype(operand.dtype) for operand in operands if not operand.weak]
    weak = [_WEAK[kind(operand.dtype)] for operand in operands if operand.weak]
    return ir.computes_in(np.result_type(*strong, *weak).name)


def join(left: Operand, right: Operand) -> tuple[str, bool]:
    """Dtype and weakness of a variable that holds either; integers of two widths have no common one."""
    if left.weak and right.weak:
        return common(left, right), True
    dtype = common(left, right)
    strong = {operand.dtype for operand in (left, right) if not operand.weak}
    if len(strong) == 2 and "float" not in {kind(d) for d in strong} and "complex" not in map(kind, strong):
        raise Mismatch(f"a value that is {' here and '.join(sorted(strong))} there")
    return dtype, False


def convert(operand: Operand, dtype: str) -> ir.Expr:
    """The operand as ``dtype``; a Python integer that does not fit is an error in NumPy too."""
    expr = operand.expr
    if isinstance(expr, ir.Const):
        return constant(expr.value, dtype)
    if ir.is_complex(expr.dtype) and not ir.is_complex(dtype):
        raise Mismatch(f"a complex number as {dtype}")
    return expr if expr.dtype == dtype else ir.Cast(expr, dtype)


def constant(value: bool | int | float | complex, dtype: str) -> ir.Const:
    """A literal of that dtype."""
    match kind(dtype):
        case "bool":
            return ir.Const(bool(value), dtype)
        case "complex":
            return ir.Const(complex(value), dtype)
        case "float" if not isinstance(value, complex):
            return ir.Const(float(value), dtype)
        case "int" if not isinstance(value, complex):
            limits = np.iinfo(dtype)
            if not limits.min <= int(value) <= limits.max:
                raise Mismatch(f"{value} as {dtype}")
            return ir.Const(int(value), dtype)
    raise Mismatch(f"a complex number as {dtype}")


def cast(operand: Operand, dtype: str) -> Operand:
    """``np.dtype(x)`` and ``x.astype(dtype)``: a NumPy value of that dtype, integers modulo their width."""
    if isinstance(operand.expr, ir.Const) and kind(operand.dtype) != "complex":
        return Operand(constant(operand.expr.value, dtype))
    return Operand(convert(operand, dtype))


def binary(op: str, left: Operand, right: Operand) -> Operand:
    """``left op right``."""
    weak = left.weak and right.weak
    if weak and (folded := _folded(op, left.expr, right.expr)) is not None:
        return folded
    dtype = common(left, right)
    match kind(dtype):
        case "bool":
            op, dtype = _on_bools(op, weak)
        case "int":
            if op == "**" and isinstance(right.expr, ir.Const) and not right.expr.value >= 0:  # type: ignore[operator]
                raise Mismatch("an integer to a negative power")
            dtype = "float64" if op == "/" else dtype
        case _ if op in ("&", "|", "^", "<<", ">>") or (ir.is_complex(dtype) and op in ("//", "%")):
            raise Mismatch(f"'{op}' on {dtype}")
    wraps = ir.is_integer(dtype) and not weak
    expr = ir.Binary(op, convert(left, dtype), convert(right, dtype), dtype, wraps)
    return Operand(expr, weak)


def _on_bools(op: str, weak: bool) -> tuple[str, str]:
    """Operation and dtype between truth values: Python's count as integers, NumPy's add by ``or``."""
    if op in ("&", "|", "^"):
        return op, "bool"
    if op == "/":
        return op, "float64"
    if weak:
        return op, "int64"
    if op in ("+", "*"):
        return {"+": "|", "*": "&"}[op], "bool"
    if op == "-":
        raise Mismatch("'-' on truth values")
    return op, "int8"


def _folded(op: str, left: ir.Expr, right: ir.Expr) -> Operand | None:
    """Integer literals are computed here, as Python would, where the result is an integer of sane size."""
    if not (isinstance(left, ir.Const) and isinstance(right, ir.Const) and op in _FOLD):
        return None
    a, b = left.value, right.value
    if not (isinstance(a, int) and isinstance(b, int)) or (op in ("//", "%") and b == 0):
        return None
    if op in ("**", "<<", ">>") and not 0 <= b <= 64:
        return None
    result = _FOLD[op](a, b)
    return python(result) if abs(result) <= _LARGEST_FOLD else None


def unary(op: str, operand: Operand) -> Operand:
    """``-x``, ``~x`` or ``not x``."""
    expr, weak = operand.expr, operand.weak
    if op == "not":
        return Operand(ir.Unary("not", truth(operand), "bool"), True)
    dtype = common(operand)
    if dtype == "bool":
        if op == "~" and not weak:
            return Operand(ir.Unary("not", expr, "bool"))
        if not weak:
            raise Mismatch("'-' on a truth value")
        dtype = "int64"
    if op == "~" and kind(dtype) != "int":
        raise Mismatch(f"'~' on {dtype}")
    if isinstance(expr, ir.Const) and weak:
        return python(~int(expr.value) if op == "~" else -expr.value)  # type: ignore[arg-type]
    return Operand(ir.Unary(op, convert(operand, dtype), dtype, ir.is_integer(dtype) and not weak), weak)


def truth(operand: Operand) -> ir.Expr:
    """The operand as a condition."""
    if operand.dtype == "bool":
        return operand.expr
    return ir.Compare("!=", operand.expr, constant(0, operand.dtype))


def compare(op: str, left: Operand, right: Operand) -> Operand:
    """``left op right``; integers compare by value whatever their widths and signs."""
    weak = left.weak and right.weak
    dtype = common(left, right)
    if ir.is_complex(dtype) and op not in ("==", "!="):
        raise Mismatch(f"'{op}' on complex numbers")
    if "int" not in (kind(left.dtype), kind(right.dtype)) or kind(left.dtype) != kind(right.dtype):
        return Operand(ir.Compare(op, convert(left, dtype), convert(right, dtype)), weak)
    for one, other in ((left, right), (right, left)):
        if isinstance(other.expr, ir.Const) and other.weak and not one.weak:
            limits, value = np.iinfo(one.dtype), int(other.expr.value)  # type: ignore[arg-type]
            if not limits.min <= value <= limits.max:
                sample = (0, value) if one is left else (value, 0)
                return Operand(ir.Const(_COMPARE[op](*sample), "bool"))
            return Operand(ir.Compare(op, convert(left, one.dtype), convert(right, one.dtype)))
    if "uint64" not in (left.dtype, right.dtype) or left.dtype == right.dtype:
        wide = left.dtype if left.dtype == right.dtype else "int64"
        return Operand(ir.Compare(op, convert(left, wide), convert(right, wide)), weak)
    return Operand(_unsigned(op, left, right), weak)


def _unsigned(op: str, left: Operand, right: Operand) -> ir.Expr:
    """A comparison of uint64 with a signed integer: by value, where a conversion of either would not do."""
    if left.dtype == "uint64":
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        return _unsigned(mirrored, right, left)
    signed = convert(left, "int64")
    if ir.is_integer(left.dtype) and left.dtype.startswith("u"):
        return ir.Compare(op, convert(left, "uint64"), right.expr)
    below = ir.Compare("<", signed, ir.Const(0, "int64"))
    plain = ir.Compare(op, ir.Cast(signed, "uint64"), right.expr)
    if op in ("<", "<=", "!="):
        return ir.Logical("or", (below, plain))
    return ir.Logical("and", (ir.Unary("not", below, "bool"), plain))


def select(test: ir.Expr, then: Operand, orelse: Operand, elementwise: bool = False) -> Operand:
    """One of two values; Python's conditional keeps them as they are, ``np.where`` makes a NumPy value."""
    if elementwise:
        dtype, weak = common(then, orelse), False
    else:
        dtype, weak = join(then, orelse)
    return Operand(ir.Select(test, convert(then, dtype), convert(orelse, dtype), dtype), weak)
