"""Expressions in C and C++: flat row-major indices, no parentheses or conversions beyond what they mean."""

from __future__ import annotations

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.backends.c_library import CLibrary
from hpcagent_bench.translators.backends.c_types import (
    AND,
    FUNCTIONS,
    LEVEL,
    MULTIPLY,
    OR,
    PRIMARY,
    RELATION,
    SELECT,
    SHIFT,
    UNARY,
    Dialect,
    literal,
    pair,
    real_of,
    stripped,
    value_type,
    wrapping,
)
from hpcagent_bench.translators.backends.naming import Names, bits
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import Writer, is_simple


class Expressions(Writer):
    """Renders expressions; statements are the concern of CWriter."""

    def __init__(
        self, function: ir.Function, names: Names, signs: Signs, library: CLibrary, dialect: Dialect
    ) -> None:
        super().__init__(function, names, signs)
        self.library = library
        self.dialect = dialect

    def element(self, name: str, index: tuple[ir.Expr, ...]) -> str:
        """``aa[i, j]`` with shape (N, M) is ``aa[i * M + j]``."""
        shape = self.function.arrays[name].shape
        flat = index[0]
        for axis, extent in zip(index[1:], shape[1:], strict=True):
            flat = _plus(ir.Binary("*", flat, extent, "int64"), axis)
        return f"{self.names[name]}[{self.text(stripped(flat))}]"

    def converted(self, value: ir.Expr) -> str:
        """A value on the right of an assignment, which converts it to the type on the left."""
        bare = stripped(value)
        if _wraps(bare) and ir.is_integer(value.dtype) and bits(value.dtype) <= bits(bare.dtype):
            return self.wrapped(bare)[0]
        return self.text(bare)

    def render(self, expr: ir.Expr) -> tuple[str, int]:
        match expr:
            case ir.Const():
                return self.constant(expr)
            case ir.Name():
                return self.names[expr.name], PRIMARY
            case ir.Load():
                return self.load(expr)
            case ir.Cast():
                return self.cast(expr)
            case ir.Unary():
                return self.unary(expr)
            case ir.Binary():
                return self.binary(expr)
            case ir.Compare():
                left, right = pair(expr.left, expr.right)
                return f"{self.text(left, SHIFT)} {expr.op} {self.text(right, SHIFT)}", LEVEL[expr.op]
            case ir.Logical():
                level, sign = (AND, " && ") if expr.op == "and" else (OR, " || ")
                return sign.join(self.text(operand, AND + 1) for operand in expr.operands), level
            case ir.Select():
                parts = [self.text(part, SELECT + 1) for part in (expr.test, expr.then, expr.orelse)]
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", SELECT
            case ir.Call():
                return self.call(expr)
            case ir.Invoke():
                return self.function_call(self.names[expr.helper], expr.args)

    def constant(self, expr: ir.Const) -> tuple[str, int]:
        text, level = literal(expr, self.dialect)
        if "NAN" in text or "INFINITY" in text:
            self.library.headers.add("math")
        if ir.is_complex(expr.dtype):
            self.library.headers.add("complex")
        return text, level

    def load(self, expr: ir.Load) -> tuple[str, int]:
        element, stored = self.element(expr.array, expr.index), self.function.arrays[expr.array].dtype
        if stored == "float16":
            return f"(float){element}", UNARY
        if stored in ("bfloat16", "float8_e4m3", "float8_e5m2"):
            return f"{self.library.helper(f'from_{stored}', 'float32', f'from_{stored}')}({element})", PRIMARY
        return element, PRIMARY

    def cast(self, expr: ir.Cast) -> tuple[str, int]:
        if expr.dtype == "bool":
            zero = ir.Const(0, expr.operand.dtype)
            return self.render(ir.Compare("!=", expr.operand, zero))
        kind = value_type(expr.dtype, self.dialect)
        if ir.is_complex(expr.dtype) and self.dialect.language == "cpp":
            real = real_of(expr.dtype)
            operand = expr.operand
            if not ir.is_complex(operand.dtype) and operand.dtype != real:
                operand = ir.Cast(operand, real)
            return f"{kind}({self.text(operand)})", PRIMARY
        if _wraps(expr.operand) and ir.is_integer(expr.dtype):
            written, level = self.wrapped(expr.operand)
            if bits(expr.dtype) <= bits(expr.operand.dtype):  # one conversion does for both
                return f"({kind}){written if level >= UNARY else f'({written})'}", UNARY
        return f"({kind}){self.text(expr.operand, UNARY)}", UNARY

    def unary(self, expr: ir.Unary) -> tuple[str, int]:
        if expr.op == "not":
            return f"!{self.text(expr.operand, UNARY)}", UNARY
        if _wraps(expr):
            return self.cut_back(expr)
        text = f"{expr.op}{self.text(expr.operand, UNARY + 1)}"
        if expr.op == "~" and expr.dtype in ("uint8", "uint16"):
            return f"({expr.dtype}_t){text}", UNARY
        return text, UNARY

    # ---- integers that wrap

    def cut_back(self, expr: ir.Expr) -> tuple[str, int]:
        """Wrapping arithmetic, done on unsigned numbers, as a value of its own dtype."""
        written, level = self.wrapped(expr)
        if expr.dtype in ("uint32", "uint64"):
            return written, level
        return (
            f"({value_type(expr.dtype, self.dialect)}){written if level >= UNARY else f'({written})'}",
            UNARY,
        )

    def wrapped(self, expr: ir.Expr, first: bool = True) -> tuple[str, int]:
        """A tree of + - * on unsigned numbers; the ``first`` operand makes it so, the others follow."""
        match expr:
            case ir.Binary() if _wraps(expr):
                level = LEVEL[expr.op]
                left, below = self.wrapped(expr.left)
                right, above = self.wrapped(expr.right, first=False)
                left = left if below >= level else f"({left})"
                return f"{left} {expr.op} {right if above > level else f'({right})'}", level
            case ir.Unary() if _wraps(expr):
                operand, below = self.wrapped(expr.operand)
                return f"-{operand if below > UNARY else f'({operand})'}", UNARY
            case ir.Const() if not first or expr.dtype.startswith("u"):
                return literal(expr, self.dialect)
            case ir.Const() if wrapping(expr.dtype) == "uint32_t" and int(expr.value.real) >= 0:
                return f"{expr.value}u", PRIMARY
        if not first or expr.dtype in ("uint32", "uint64"):
            return self.render(expr)
        return f"({wrapping(expr.dtype)}){self.text(expr, UNARY)}", UNARY

    # ---- operators

    def binary(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype = expr.op, expr.dtype
        if op in ("//", "%"):
            return self.division(expr)
        if op == "**":
            return self.power(expr)
        if op in ("<<", ">>"):
            return self.shift(expr)
        if ir.is_complex(dtype) and op in "*/":
            scaled = self.scaled(expr) if op == "*" else None
            if scaled is not None:
                return scaled
            return self.helper_call("complex_multiply" if op == "*" else "complex_divide", expr, dtype)
        if _wraps(expr):
            return self.cut_back(expr)
        level = LEVEL[op]
        left, right = pair(expr.left, expr.right)
        if op in "&|^":
            same = isinstance(left, ir.Binary) and left.op == op
            return f"{self.text(left, level if same else UNARY)} {op} {self.text(right, UNARY)}", level
        return f"{self.text(left, level)} {op} {self.text(right, level + 1)}", level

    def scaled(self, expr: ir.Binary) -> tuple[str, int] | None:
        """A complex number times a real one, which C multiplies part by part."""
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(factor, ir.Cast) and factor.operand.dtype == real_of(expr.dtype):
                return f"{self.text(factor.operand, MULTIPLY)} * {self.text(other, MULTIPLY + 1)}", MULTIPLY
        return None

    def helper_call(self, base: str, expr: ir.Binary | ir.Call, dtype: str) -> tuple[str, int]:
        args = (expr.left, expr.right) if isinstance(expr, ir.Binary) else expr.args
        return self.function_call(self.library.helper(base, dtype), args)

    def function_call(self, name: str, args: tuple[ir.Expr, ...]) -> tuple[str, int]:
        return f"{name}({self.listed(stripped(arg) for arg in args)})", PRIMARY

    def division(self, expr: ir.Binary) -> tuple[str, int]:
        dtype, left, right = expr.dtype, expr.left, expr.right
        name = "div" if expr.op == "//" else "mod"
        if not ir.is_integer(dtype):
            return self.helper_call("real_mod" if name == "mod" else "real_floor_div", expr, dtype)
        plain = dtype == "int64" and self.signs.divides_plainly(left, right)
        if dtype.startswith("u"):
            plain = isinstance(right, ir.Const) and right.value != 0
        if plain:
            left, right = pair(left, right)
            sign = "/" if expr.op == "//" else "%"
            return f"{self.text(left, MULTIPLY)} {sign} {self.text(right, MULTIPLY + 1)}", MULTIPLY
        return self.helper_call(f"unsigned_{name}" if dtype.startswith("u") else f"floor_{name}", expr, dtype)

    def power(self, expr: ir.Binary) -> tuple[str, int]:
        dtype = expr.dtype
        if ir.is_integer(dtype):
            return self.helper_call("power", expr, dtype)
        if expr.right == ir.Const(2.0, dtype) and is_simple(expr.left):
            return self.binary(ir.Binary("*", expr.left, expr.left, dtype))
        if ir.is_complex(dtype):
            return self.helper_call("complex_power", expr, dtype)
        return self.mathematical("pow", (expr.left, expr.right), dtype)

    def shift(self, expr: ir.Binary) -> tuple[str, int]:
        dtype, count = expr.dtype, expr.right
        inside = isinstance(count, ir.Const) and 0 <= int(count.value.real) < bits(dtype)
        if not inside:
            return self.helper_call("shift_left" if expr.op == "<<" else "shift_right", expr, dtype)
        assert isinstance(count, ir.Const)
        digits = str(count.value)
        if expr.op == ">>":
            return f"{self.text(expr.left, UNARY)} >> {digits}", SHIFT
        left, below = self.wrapped(expr.left)
        written = f"{left if below >= UNARY else f'({left})'} << {digits}"
        if dtype in ("uint32", "uint64"):
            return written, SHIFT
        return f"({value_type(dtype, self.dialect)})({written})", UNARY

    # ---- functions

    def call(self, expr: ir.Call) -> tuple[str, int]:
        name, operand = expr.function, expr.args[0].dtype
        if name in ("minimum", "maximum", "min", "max"):
            return self.extremum(expr)
        if name == "abs" and ir.is_integer(expr.dtype):
            if expr.dtype.startswith("u"):
                return self.render(expr.args[0])
            return self.helper_call("absolute", expr, expr.dtype)
        if ir.is_complex(operand):
            self.library.headers.add("complex")
            prefix = "" if name == "conj" and self.dialect.language == "c" else self.dialect.prefix
            return self.function_call(f"{prefix}{name}{self.dialect.suffix[operand]}", expr.args)
        return self.mathematical(
            "fabs" if name == "abs" else FUNCTIONS.get(name, name), expr.args, expr.dtype
        )

    def mathematical(self, name: str, args: tuple[ir.Expr, ...], dtype: str) -> tuple[str, int]:
        self.library.headers.add("math")
        return self.function_call(name + ("f" if dtype == "float32" else ""), args)

    def extremum(self, expr: ir.Call) -> tuple[str, int]:
        """Python keeps the first operand unless the second beats it; NumPy passes a NaN of either on."""
        first, second = expr.args
        sign = "<" if expr.function.startswith("min") else ">"
        python = expr.function in ("min", "max") or not ir.is_float(expr.dtype)
        if isinstance(first, ir.Const) and not python:
            first, second = second, first
        if ir.is_float(expr.dtype) or not (is_simple(first) and is_simple(second)):
            base = {"minimum": "smaller", "maximum": "larger", "min": "smaller", "max": "larger"}
            plain = python or isinstance(
                second, ir.Const
            )  # a NaN in the first operand loses every comparison
            helper = self.library.helper(base[expr.function] if plain else expr.function, expr.dtype)
            return self.function_call(helper, (first, second))  # of 0 > x ? 0 : x gcc would make a branch
        a, b = self.text(first, RELATION + 1), self.text(second, RELATION + 1)
        return f"{b} {sign} {a} ? {b} : {a}", SELECT


def _plus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """An integer sum written from left to right, so that ``i * M + (j - 1)`` needs no parentheses."""
    if right == ir.Const(0, "int64"):
        return left
    if isinstance(right, ir.Binary) and right.op in "+-" and not right.wraps:
        return ir.Binary(right.op, _plus(left, right.left), right.right, "int64")
    return ir.Binary("+", left, right, "int64")


def _wraps(expr: ir.Expr) -> bool:
    """Whether an operation on integers overflows modulo their width."""
    if isinstance(expr, ir.Binary):
        return expr.wraps and expr.op in ("+", "-", "*") and ir.is_integer(expr.dtype)
    return isinstance(expr, ir.Unary) and expr.wraps and expr.op == "-"
