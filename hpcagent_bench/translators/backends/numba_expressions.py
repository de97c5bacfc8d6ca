"""Expressions in numba's Python: what numba would widen is cut back to its dtype."""

from __future__ import annotations

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.backends.naming import Library, Names, bits
from hpcagent_bench.translators.backends.numba_helpers import HELPERS
from hpcagent_bench.translators.backends.numba_types import (
    AND,
    LEVEL,
    NOT,
    OR,
    PRIMARY,
    RELATION,
    SELECT,
    UNARY,
    VIEWS,
    bare,
    beside,
    literal,
    plain,
    widened,
    wraps_narrow,
)
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import Writer, is_simple


class NumbaLibrary(Library):
    """Helper functions of a module."""

    def _written(self, base: str, dtype: str, spelled: str) -> str:
        text = HELPERS[base].replace("$name", spelled).replace("$T", f"np.{dtype}")
        return text.replace("$bits", str(bits(dtype)))


class Expressions(Writer):
    """Renders expressions; statements are the concern of NumbaWriter."""

    def __init__(self, function: ir.Function, names: Names, signs: Signs, library: NumbaLibrary) -> None:
        super().__init__(function, names, signs)
        self.library = library

    def element(self, name: str, index: tuple[ir.Expr, ...]) -> str:
        return f"{self.names[name]}[{', '.join(self.text(bare(axis)) for axis in index)}]"

    def render(self, expr: ir.Expr) -> tuple[str, int]:
        match expr:
            case ir.Const():
                return literal(expr)
            case ir.Name():
                return self.names[expr.name], PRIMARY
            case ir.Load():
                element, stored = self.element(expr.array, expr.index), self.function.arrays[expr.array].dtype
                if stored in VIEWS:
                    name = f"from_{stored}"
                    return f"{self.library.helper(name, 'float32', name)}({element})", PRIMARY
                return element, PRIMARY
            case ir.Cast():
                if expr.dtype == "bool":
                    return self.render(ir.Compare("!=", expr.operand, ir.Const(0, expr.operand.dtype)))
                return f"np.{expr.dtype}({self.text(expr.operand)})", PRIMARY
            case ir.Unary():
                return self.unary(expr)
            case ir.Binary():
                return self.binary(expr)
            case ir.Compare():
                left, right = (plain(side) for side in beside(expr.left, expr.right))
                return f"{self.text(left, RELATION + 1)} {expr.op} {self.text(right, RELATION + 1)}", RELATION
            case ir.Logical():
                level = AND if expr.op == "and" else OR
                return f" {expr.op} ".join(self.text(operand, level + 1) for operand in expr.operands), level
            case ir.Select():
                then, test, orelse = (self.text(e, SELECT + 1) for e in (expr.then, expr.test, expr.orelse))
                return f"{then} if {test} else {orelse}", SELECT
            case ir.Call():
                return self.call(expr)
            case ir.Invoke():
                return f"{self.names_of_helpers(expr.helper)}({self.listed(expr.args)})", PRIMARY

    def names_of_helpers(self, helper: str) -> str:
        return self.library.names[helper]

    def unary(self, expr: ir.Unary) -> tuple[str, int]:
        if expr.op == "not":
            return f"not {self.text(expr.operand, NOT)}", NOT
        text = f"{expr.op}{self.text(expr.operand, UNARY)}"
        return (f"np.{expr.dtype}({text})", PRIMARY) if widened(expr.dtype) else (text, UNARY)

    def binary(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype = expr.op, expr.dtype
        helper = self.helper_for(expr)
        if helper is not None:
            return f"{self.library.helper(helper, dtype)}({self.listed((expr.left, expr.right))})", PRIMARY
        if wraps_narrow(expr):
            return f"np.{dtype}({self.uncut(expr)[0]})", PRIMARY
        level = LEVEL[op]
        left, right = beside(expr.left, expr.right)
        if op == "**":
            text = f"{self.text(left, PRIMARY)} ** {self.text(right, UNARY)}"
        else:
            text = f"{self.text(left, level)} {op} {self.text(right, level + 1)}"
        return (f"np.{dtype}({text})", PRIMARY) if ir.is_integer(dtype) and widened(dtype) else (text, level)

    def uncut(self, expr: ir.Expr) -> tuple[str, int]:
        """Signed arithmetic of a narrow dtype in numba's own 64 bits: cut back once, at the end."""
        if isinstance(expr, ir.Const):
            return str(expr.value), UNARY if int(expr.value.real) < 0 else PRIMARY
        if not isinstance(expr, ir.Binary) or not wraps_narrow(expr):
            return self.render(expr)
        level = LEVEL[expr.op]
        left, below = self.uncut(expr.left)
        right, above = self.uncut(expr.right)
        left = left if below >= level else f"({left})"
        return f"{left} {expr.op} {right if above > level else f'({right})'}", level

    def helper_for(self, expr: ir.Binary) -> str | None:
        """The helper that does what numba's operator does not, or None."""
        op, dtype, right = expr.op, expr.dtype, expr.right
        constant = right.value if isinstance(right, ir.Const) else None
        if op in ("//", "%"):
            name = "div" if op == "//" else "mod"
            if not ir.is_integer(dtype):
                return "real_mod" if op == "%" else "real_floor_div"
            if isinstance(constant, int) and constant > 0:
                return None
            if not expr.wraps and self.signs.divides_plainly(expr.left, right):
                return None
            return f"unsigned_{name}" if dtype.startswith("u") else f"floor_{name}"
        if op == "**" and ir.is_integer(dtype):
            return "power"
        if op == "**" and ir.is_complex(dtype):
            return "complex_power"
        if op in ("<<", ">>") and not (isinstance(constant, int) and 0 <= constant < bits(dtype)):
            return "shift_left" if op == "<<" else "shift_right"
        return None

    def call(self, expr: ir.Call) -> tuple[str, int]:
        name, args = expr.function, expr.args
        if name in ("min", "max"):
            first, second = args
            if not (is_simple(first) and is_simple(second)):
                base = "smaller" if name == "min" else "larger"
                return f"{self.library.helper(base, 'float64', base)}({self.listed(args)})", PRIMARY
            a, b = self.text(first, RELATION + 1), self.text(second, RELATION + 1)
            return f"{b} if {b} {'<' if name == 'min' else '>'} {a} else {a}", SELECT
        if name == "abs":
            text = f"abs({self.listed(args)})"
            return (f"np.{expr.dtype}({text})" if widened(expr.dtype) else text), PRIMARY
        if name in ("real", "imag"):
            return f"{self.text(args[0], PRIMARY)}.{name}", PRIMARY
        text = f"np.{name}({self.listed(args)})"
        return (f"np.{expr.dtype}({text})" if widened(expr.dtype) else text), PRIMARY
