"""The functions of NumPy and Python that a reference may apply to single values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend.promotion import (
    Mismatch,
    Operand,
    binary,
    cast,
    common,
    compare,
    constant,
    convert,
    join,
    kind,
    python,
    truth,
    unary,
)

FLOATING = {
    **dict.fromkeys(("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("arcsinh", "arccosh", "arctanh"), 1),
    **dict.fromkeys(("arctan2", "hypot", "copysign", "fmin", "fmax", "fmod"), 2),
}
"""Functions that compute in floating point, with their number of arguments: a Call by this name."""

_ON_COMPLEX = ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")
_ROUNDING = ("floor", "ceil", "trunc", "rint")
OPERATORS = {
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/"},
    **{"floor_divide": "//", "mod": "%", "remainder": "%", "power": "**", "float_power": "**"},
    **{"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>"},
}
COMPARISONS = {
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="},
    **{"equal": "==", "not_equal": "!="},
}
DTYPES = {
    **{name: name for name in ("float64", "float32", "float16", "complex64", "complex128")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"bool_": "bool", "bool": "bool", "intp": "int64", "double": "float64", "single": "float32"},
    **{"int_": "int64", "uint": "uint64", "half": "float16"},
}
"""Attributes of ``np`` that name a dtype."""


def strong(operand: Operand) -> Operand:
    """The operand as NumPy makes it an array element: Python's numbers become int64, float64, ..."""
    return Operand(convert(operand, common(operand))) if operand.weak else operand


def apply(name: str, args: tuple[Operand, ...]) -> Operand | None:
    """``np.name(*args)`` on single values, or None when the name is not known here."""
    if name in _ELEMENTWISE and len(args) == _ELEMENTWISE[name][0]:
        return _ELEMENTWISE[name][1](*args)
    if name in FLOATING and len(args) == FLOATING[name]:
        return _floating(name, args)
    if name in _ROUNDING and len(args) == 1:
        return _rounded(name, args[0])
    if name in OPERATORS and len(args) == 2:
        if name == "float_power":
            args = (cast(args[0], "float64"), cast(args[1], "float64"))
        return strong(binary(OPERATORS[name], strong_first(args), args[1]))
    if name in COMPARISONS and len(args) == 2:
        return Operand(compare(COMPARISONS[name], *args).expr)
    return None


def strong_first(args: tuple[Operand, ...]) -> Operand:
    """The first operand, made NumPy's when no other one is."""
    return strong(args[0]) if all(arg.weak for arg in args) else args[0]


def known(name: str) -> bool:
    return (
        name in _ELEMENTWISE or name in FLOATING or name in _ROUNDING or name in {**OPERATORS, **COMPARISONS}
    )


def builtin(name: str, args: tuple[Operand, ...]) -> Operand | None:
    """Python's own ``abs``, ``min``, ``max``, ``int``, ``float`` and ``bool``."""
    match name, args:
        case "abs", (value,):
            return Operand(_absolute(value).expr, value.weak)
        case "min" | "max", (first, *rest) if rest:
            result = first
            for value in rest:
                dtype, weak = join(result, value)
                call = ir.Call(name, (convert(result, dtype), convert(value, dtype)), dtype)
                result = Operand(call, weak)
            return result
        case "int" | "float" | "bool", (value,):
            if kind(value.dtype) == "complex":
                raise Mismatch(f"{name}() of a complex number")
            if name == "bool":
                return Operand(truth(value), True)
            dtype = "int64" if name == "int" else "float64"
            return Operand(convert(value, dtype), True)
        case "complex", (real, imag):
            return binary("+", real, binary("*", imag, python(1j)))
    return None


def float_of(operand: Operand) -> str:
    """The floating dtype a mathematical function of this operand computes in: NumPy's choice by width."""
    dtype = common(operand)
    if kind(dtype) in ("float", "complex"):
        return dtype
    return "float32" if np.dtype(dtype).itemsize < 4 else "float64"


def _floating(name: str, args: tuple[Operand, ...]) -> Operand:
    floats = [Operand(convert(arg, float_of(arg)), arg.weak and kind(arg.dtype) == "float") for arg in args]
    dtype = common(*floats)
    if ir.is_complex(dtype) and name not in _ON_COMPLEX:
        raise Mismatch(f"np.{name} of a complex number")
    return Operand(ir.Call(name, tuple(convert(value, dtype) for value in floats), dtype))


def _rounded(name: str, value: Operand) -> Operand:
    value = strong(value)
    if kind(value.dtype) in ("bool", "int") and name != "rint":
        return value
    return _floating(name, (value,))


def _absolute(value: Operand) -> Operand:
    dtype = common(value)
    if dtype == "bool":
        return value if not value.weak else Operand(convert(value, "int64"), True)
    result = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return Operand(ir.Call("abs", (convert(value, dtype),), result))


def _extremum(name: str) -> Callable[[Operand, Operand], Operand]:
    def call(left: Operand, right: Operand) -> Operand:
        left = strong_first((left, right))
        dtype = common(left, right)
        if dtype == "bool":
            return binary("&" if name == "minimum" else "|", left, right)
        if ir.is_complex(dtype):
            raise Mismatch(f"np.{name} of complex numbers")
        return Operand(ir.Call(name, (convert(left, dtype), convert(right, dtype)), dtype))

    return call


def _clip(value: Operand, low: Operand, high: Operand) -> Operand:
    return _extremum("minimum")(_extremum("maximum")(value, low), high)


def _sign(value: Operand) -> Operand:
    value = strong(value)
    if kind(value.dtype) in ("bool", "complex"):
        raise Mismatch(f"np.sign of {value.dtype}")
    zero, one = constant(0, value.dtype), constant(1, value.dtype)
    above, below = ir.Compare(">", value.expr, zero), ir.Compare("<", value.expr, zero)
    if value.dtype.startswith("u"):
        return Operand(ir.Select(above, one, zero, value.dtype))
    rest = zero if kind(value.dtype) == "int" else value.expr  # a zero or a NaN
    minus = constant(-1, value.dtype)
    return Operand(ir.Select(above, one, ir.Select(below, minus, rest, value.dtype), value.dtype))


def _part(name: str) -> Callable[[Operand], Operand]:
    def call(value: Operand) -> Operand:
        value = strong(value)
        if kind(value.dtype) != "complex":
            return Operand(constant(0, value.dtype)) if name == "imag" else value
        if name == "conj":
            return Operand(ir.Call("conj", (value.expr,), value.dtype))
        return Operand(ir.Call(name, (value.expr,), "float32" if value.dtype == "complex64" else "float64"))

    return call


def _logical(op: str) -> Callable[[Operand, Operand], Operand]:
    def call(left: Operand, right: Operand) -> Operand:
        if op == "!=":
            return Operand(ir.Compare("!=", truth(left), truth(right)))
        return Operand(ir.Logical(op, (truth(left), truth(right))))

    return call


def _not_a_number(value: Operand) -> Operand:
    value = strong(value)
    if kind(value.dtype) not in ("float", "complex"):
        return Operand(ir.Const(False, "bool"))
    return Operand(ir.Compare("!=", value.expr, value.expr))


def _finite(value: Operand) -> Operand:
    """x - x is zero for every finite number and NaN for the others."""
    value = strong(value)
    if kind(value.dtype) not in ("float", "complex"):
        return Operand(ir.Const(True, "bool"))
    gap = ir.Binary("-", value.expr, value.expr, value.dtype)
    return Operand(ir.Compare("==", gap, constant(0, value.dtype)))


def _reciprocal(value: Operand) -> Operand:
    value = strong(value)
    return binary("//" if kind(value.dtype) == "int" else "/", python(1), value)


def _heaviside(value: Operand, at_zero: Operand) -> Operand:
    value = strong(value)
    zero, one = constant(0, value.dtype), constant(1, value.dtype)
    rest = ir.Select(
        ir.Compare("==", value.expr, zero), convert(at_zero, value.dtype), value.expr, value.dtype
    )
    below = ir.Select(ir.Compare("<", value.expr, zero), zero, rest, value.dtype)
    return Operand(ir.Select(ir.Compare(">", value.expr, zero), one, below, value.dtype))


_ELEMENTWISE: dict[str, tuple[int, Callable[..., Operand]]] = {
    "abs": (1, lambda x: _absolute(strong(x))),
    "absolute": (1, lambda x: _absolute(strong(x))),
    "fabs": (1, lambda x: _absolute(cast(x, float_of(x)))),
    "sign": (1, _sign),
    "square": (
        1,
        lambda x: binary("*", strong(x), strong(x)) if ir.is_integer(x.dtype) else _squared(strong(x)),
    ),
    "negative": (1, lambda x: unary("-", strong(x))),
    "positive": (1, strong),
    "reciprocal": (1, _reciprocal),
    "heaviside": (2, _heaviside),
    "minimum": (2, _extremum("minimum")),
    "maximum": (2, _extremum("maximum")),
    "clip": (3, _clip),
    "real": (1, _part("real")),
    "imag": (1, _part("imag")),
    "conj": (1, _part("conj")),
    "conjugate": (1, _part("conj")),
    "invert": (1, lambda x: unary("~", strong(x))),
    "bitwise_not": (1, lambda x: unary("~", strong(x))),
    "logical_not": (1, lambda x: Operand(ir.Unary("not", truth(x), "bool"))),
    "logical_and": (2, _logical("and")),
    "logical_or": (2, _logical("or")),
    "logical_xor": (2, _logical("!=")),
    "isnan": (1, _not_a_number),
    "isfinite": (1, _finite),
}


def _squared(value: Operand) -> Operand:
    return binary("**", value, python(2))
