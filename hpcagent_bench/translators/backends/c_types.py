"""How C and C++ spell values: types, literals, and the conversions that need not be written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpcagent_bench.toolchain import abi
from hpcagent_bench.translators import ir

# how tightly operators bind
SELECT, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, RELATION, SHIFT, ADD, MULTIPLY, UNARY, PRIMARY = range(
    3, 16
)
LEVEL = {
    **{"*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY, "+": ADD, "-": ADD, "<<": SHIFT, ">>": SHIFT},
    **{"<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION, "==": EQUAL, "!=": EQUAL},
    **{"&": BIT_AND, "^": BIT_XOR, "|": BIT_OR},
}
FUNCTIONS = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2",
}
"""Functions that C calls otherwise than NumPy."""


@dataclass(frozen=True)
class Dialect:
    """What differs between C and C++."""

    language: abi.CLanguage
    restrict: str
    headers: dict[str, str]
    real: str
    imag: str
    make: dict[str, str]
    prefix: str  # of a function on complex numbers
    suffix: dict[str, str]


C = Dialect(
    language="c",
    restrict="restrict",
    headers={name: f"<{name}.h>" for name in ("stdint", "math", "stdlib", "string", "complex", "stdbool")},
    real="creal",
    imag="cimag",
    # what CMPLX stands for: the C library's header does not define it for every compiler
    make=dict.fromkeys(("complex128", "complex64"), "__builtin_complex"),
    prefix="c",
    suffix={"complex128": "", "complex64": "f"},
)
CPP = Dialect(
    language="cpp",
    restrict="__restrict__",
    headers={
        **{name: f"<c{name}>" for name in ("stdint", "math", "stdlib", "string")},
        "complex": "<complex>",
    },
    real="std::real",
    imag="std::imag",
    make={"complex128": "std::complex<double>", "complex64": "std::complex<float>"},
    prefix="std::",
    suffix={"complex128": "", "complex64": ""},
)


def value_type(dtype: str, dialect: Dialect) -> str:
    """The type of a local that holds ``dtype``."""
    return "bool" if dtype == "bool" else abi.c_type(dtype, dialect.language)


def unsigned(dtype: str) -> str:
    """The unsigned type of the width of an integer dtype."""
    return f"{dtype if dtype.startswith('u') else 'u' + dtype}_t"


def wrapping(dtype: str) -> str:
    """The unsigned type in which arithmetic on ``dtype`` wraps: C widens what is narrower than an int."""
    return "uint64_t" if dtype.endswith("64") else "uint32_t"


def real_of(dtype: str) -> str:
    """The float dtype of the parts of a complex one."""
    return "float32" if dtype == "complex64" else "float64"


def literal(expr: ir.Const, dialect: Dialect) -> tuple[str, int]:
    """A literal of the expression's dtype and how tightly it binds."""
    value, dtype = expr.value, expr.dtype
    if dtype == "bool":
        return ("true" if value else "false"), PRIMARY
    if ir.is_complex(dtype):
        number = complex(value)
        parts = [literal(ir.Const(part, real_of(dtype)), dialect)[0] for part in (number.real, number.imag)]
        return f"{dialect.make[dtype]}({', '.join(parts)})", PRIMARY
    assert not isinstance(value, complex)
    if ir.is_float(dtype):
        return _float(float(value), "f" if dtype == "float32" else "")
    number = int(value)
    if dtype.startswith("u"):
        return f"{number}u", PRIMARY
    if number == -(2**63):
        return "INT64_MIN", PRIMARY
    return str(number), UNARY if number < 0 else PRIMARY


def _float(value: float, suffix: str) -> tuple[str, int]:
    if math.isnan(value):
        return "NAN", PRIMARY
    if math.isinf(value):
        return ("INFINITY", PRIMARY) if value > 0 else ("-INFINITY", UNARY)
    return f"{value!r}{suffix}", UNARY if value < 0 or str(value).startswith("-") else PRIMARY


_NARROW = ("bool", "int8", "uint8", "int16", "uint16")
_IMPLICIT = {
    "float64": (*_NARROW, "int32", "uint32", "int64", "uint64", "float32"),
    "float32": (*_NARROW, "int32", "uint32", "int64", "uint64"),
    "int64": (*_NARROW, "int32", "uint32"),
    "uint64": ("bool", "uint8", "uint16", "uint32"),
    "int32": _NARROW,
    "uint32": ("bool", "uint8", "uint16"),
    "int16": ("bool", "int8", "uint8"),
    "uint16": ("bool", "uint8"),
}


def is_implicit(expr: ir.Expr) -> bool:
    """Whether C makes a conversion by itself, beside an operand of its dtype or in an assignment."""
    return isinstance(expr, ir.Cast) and expr.operand.dtype in _IMPLICIT.get(expr.dtype, ())


def stripped(expr: ir.Expr) -> ir.Expr:
    """The expression without an outer conversion that C makes by itself."""
    return expr.operand if isinstance(expr, ir.Cast) and is_implicit(expr) else expr


def has_own_type(expr: ir.Expr) -> bool:
    """Whether the C expression has the type of its dtype, so that an operand beside it is converted to it."""
    match expr:
        case ir.Const():
            return not ir.is_integer(expr.dtype)
        case ir.Binary():
            return has_own_type(expr.left) or has_own_type(expr.right)
        case ir.Select():
            return has_own_type(expr.then) or has_own_type(expr.orelse)
        case ir.Unary():
            return has_own_type(expr.operand)
        case _:
            return True


def pair(left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Both operands without the conversion that the other one brings about."""
    if is_implicit(right) and has_own_type(left):
        return left, stripped(right)
    if is_implicit(left) and has_own_type(right):
        return stripped(left), right
    return left, right
