"""Integer expressions as sums: arithmetic that keeps indices short, and their polynomials for proofs."""

from __future__ import annotations

from collections.abc import Callable

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import notation
from hpcagent_bench.translators.analysis.polynomials import Polynomial

ZERO = ir.Const(0, "int64")
ONE = ir.Const(1, "int64")
Sum = dict[ir.Expr | None, int]
"""Coefficients by term; None is the constant's key. Terms are anything that is no sum itself."""


def number(value: int) -> ir.Const:
    return ir.Const(value, "int64")


def known(expr: ir.Expr) -> int | None:
    """The value of an integer literal."""
    return expr.value if isinstance(expr, ir.Const) and isinstance(expr.value, int) else None


def plus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``left + right`` with like terms collected."""
    return (
        left
        if known(right) == 0
        else right
        if known(left) == 0
        else _written(_add(_sum(left), _sum(right), 1))
    )


def minus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``left - right`` with like terms collected."""
    return left if known(right) == 0 else _written(_add(_sum(left), _sum(right), -1))


def times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``left * right``, multiplied out when one of them is a number."""
    for factor, other in ((known(left), right), (known(right), left)):
        if factor is not None:
            return (
                other
                if factor == 1
                else _written({term: c * factor for term, c in _sum(other).items() if factor})
            )
    return ir.Binary("*", left, right, "int64")


def divided(expr: ir.Expr, divisor: int) -> ir.Expr:
    """``expr // divisor`` for a positive divisor."""
    value = known(expr)
    if divisor == 1:
        return expr
    return number(value // divisor) if value is not None else ir.Binary("//", expr, number(divisor), "int64")


def same(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether two expressions are equal as sums."""
    return left == right or known(minus(left, right)) == 0


def _sum(expr: ir.Expr) -> Sum:
    match expr:
        case ir.Const(value=int() as value):
            return {None: value}
        case ir.Unary(op="-", wraps=False):
            return _add({}, _sum(expr.operand), -1)
        case ir.Binary(op="+", wraps=False, dtype="int64"):
            return _add(_sum(expr.left), _sum(expr.right), 1)
        case ir.Binary(op="-", wraps=False, dtype="int64"):
            return _add(_sum(expr.left), _sum(expr.right), -1)
        case ir.Binary(op="*", left=ir.Const(value=int() as factor), wraps=False):
            return _add({}, _sum(expr.right), factor)
        case ir.Binary(op="*", right=ir.Const(value=int() as factor), wraps=False):
            return _add({}, _sum(expr.left), factor)
        case _:
            return {expr: 1}


def _add(left: Sum, right: Sum, factor: int) -> Sum:
    result = dict(left)
    for term, coefficient in right.items():
        result[term] = result.get(term, 0) + factor * coefficient
    return result


def _written(total: Sum) -> ir.Expr:
    """Terms in the order they came, one with a plus first, the constant last."""
    constant = total.get(None, 0)
    terms = [(term, c) for term, c in total.items() if term is not None and c]
    terms.sort(key=lambda pair: pair[1] < 0)
    if not terms:
        return number(constant)
    result: ir.Expr | None = None
    if terms[0][1] < 0 < constant:
        result, constant = number(constant), 0
    for term, coefficient in terms:
        scaled = term if abs(coefficient) == 1 else ir.Binary("*", number(abs(coefficient)), term, "int64")
        if result is None:
            result = scaled if coefficient > 0 else ir.Unary("-", scaled, "int64")
        else:
            result = ir.Binary("+" if coefficient > 0 else "-", result, scaled, "int64")
    assert result is not None
    if constant:
        result = ir.Binary("+" if constant > 0 else "-", result, number(abs(constant)), "int64")
    return result


def polynomial(expr: ir.Expr, named: Callable[[ir.Expr], str] = notation.text) -> Polynomial:
    """The expression as a polynomial; what is neither sum nor product gets a name by ``named``."""
    match expr:
        case ir.Const(value=int() as value):
            return Polynomial.constant(int(value))
        case ir.Unary(op="-", wraps=False):
            return -polynomial(expr.operand, named)
        case ir.Binary(op="+" | "-" | "*", wraps=False, dtype="int64"):
            left, right = polynomial(expr.left, named), polynomial(expr.right, named)
            return left + right if expr.op == "+" else left - right if expr.op == "-" else left * right
        case _:
            return Polynomial.name(named(expr))
