"""How Fortran spells values: kinds, literals, and the conversions that need not be written."""

from __future__ import annotations

import math

from hpcagent_bench.toolchain.fortran_abi import KINDS
from hpcagent_bench.translators import ir

# how tightly operators bind
EQUIVALENT, OR, AND, NOT, RELATION, ADD, MULTIPLY, POWER, PRIMARY = range(1, 10)
STORAGE = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2")


def kind(dtype: str) -> str:
    """The kind in which a number of that dtype is computed."""
    return "c_int64_t" if dtype in ("uint8", "uint16", "uint32") else KINDS[dtype]


def value_type(dtype: str) -> str:
    """The type of a local that holds ``dtype``."""
    if dtype == "bool":
        return "logical"
    family = "complex" if ir.is_complex(dtype) else "real" if ir.is_float(dtype) else "integer"
    return f"{family}({kind(dtype)})"


def mask(dtype: str) -> str | None:
    """The bits that a narrow unsigned dtype keeps."""
    narrow = {"uint8": 255, "uint16": 65535, "uint32": 4294967295}
    return f"{narrow[dtype]}_c_int64_t" if dtype in narrow else None


def literal(expr: ir.Const) -> tuple[str, int]:
    value, dtype = expr.value, expr.dtype
    if dtype == "bool":
        return (".true." if value else ".false."), PRIMARY
    if ir.is_complex(dtype):
        number, part = complex(value), "float32" if dtype == "complex64" else "float64"
        parts = [literal(ir.Const(side, part))[0] for side in (number.real, number.imag)]
        return f"cmplx({', '.join(parts)}, {kind(dtype)})", PRIMARY
    assert not isinstance(value, complex)
    if ir.is_float(dtype):
        return _real(float(value), dtype)
    number = int(value)
    if dtype == "uint64" and number >= 2**63:
        number -= 2**64
    if number < 0 and number in (-(2**63), -(2**31), -(2**15), -(2**7)):  # no literal reaches that far
        return f"({number + 1}_{kind(dtype)} - 1_{kind(dtype)})", PRIMARY
    return f"{number}_{kind(dtype)}", ADD if number < 0 else PRIMARY


def _real(value: float, dtype: str) -> tuple[str, int]:
    own = kind(dtype)
    if math.isfinite(value):
        return f"{value!r}_{own}", ADD if str(value).startswith("-") else PRIMARY
    patterns = {"float64": (2047 << 52, 1 << 51, "c_int64_t"), "float32": (255 << 23, 1 << 22, "c_int32_t")}
    infinity, quiet, integer = patterns[dtype]
    pattern = infinity + (quiet if math.isnan(value) else 0)
    if value == -math.inf:  # the sign bit set in a negative integer: no arithmetic on infinity
        pattern = infinity - (1 << (63 if dtype == "float64" else 31))
    return f"transfer({pattern}_{integer}, 0.0_{own})", PRIMARY


def widens(dtype: str) -> bool:
    """Whether Fortran converts an integer of that dtype to int64 by itself."""
    return ir.is_integer(dtype) and dtype not in ("int64", "uint64")


def beside(left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Operands without a conversion that the other one brings about."""
    if _brought_about(right) and not _brought_about(left) and not _is_integer_literal(left):
        assert isinstance(right, ir.Cast)
        return left, right.operand
    if _brought_about(left) and not _brought_about(right) and not _is_integer_literal(right):
        assert isinstance(left, ir.Cast)
        return left.operand, right
    return left, right


def _brought_about(expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Cast):
        return False
    source = expr.operand.dtype
    if expr.dtype == "float64":
        return source == "float32" or (ir.is_integer(source) and source != "uint64")
    return expr.dtype == "int64" and widens(source)


def _is_integer_literal(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and ir.is_integer(expr.dtype)
