"""Expressions in Fortran: reversed indices, unsigned numbers in signed kinds, no ``==`` between reals.

uint8, uint16 and uint32 are computed in 64 bits and cut back; a uint64 is the 64 bits of the number.
"""

from __future__ import annotations

from hpcagent_bench.toolchain.fortran_abi import KINDS
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.backends import fortran_helpers
from hpcagent_bench.translators.backends.fortran_library import FortranLibrary
from hpcagent_bench.translators.backends.fortran_types import (
    ADD,
    AND,
    EQUIVALENT,
    MULTIPLY,
    NOT,
    OR,
    POWER,
    PRIMARY,
    RELATION,
    STORAGE,
    beside,
    kind,
    literal,
    mask,
    widens,
)
from hpcagent_bench.translators.backends.naming import Names, bits
from hpcagent_bench.translators.backends.signs import Signs
from hpcagent_bench.translators.backends.writing import Writer, is_simple

_BITS = {"&": "iand", "|": "ior", "^": "ieor"}
_LOGICAL = {"&": (".and.", AND), "|": (".or.", OR), "^": (".neqv.", EQUIVALENT)}
_UNSIGNED = {"<": "blt", "<=": "ble", ">": "bgt", ">=": "bge"}
_WRAPPING = {"+": "add", "-": "subtract", "*": "multiply"}
_SPELLED = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{
        "arctan2": "atan2",
        "copysign": "sign",
        "fmod": "mod",
        "trunc": "aint",
        "conj": "conjg",
        "imag": "aimag",
    },
}
_ROUNDING = {"floor": "round_down", "ceil": "round_up", "rint": "round_even"}


class Expressions(Writer):
    """Renders expressions; statements are the concern of FortranWriter."""

    def __init__(self, function: ir.Function, names: Names, signs: Signs, library: FortranLibrary) -> None:
        super().__init__(function, names, signs)
        self.library = library

    def element(self, name: str, index: tuple[ir.Expr, ...]) -> str:
        return f"{self.names[name]}({', '.join(self.bare(axis) for axis in reversed(index))})"

    def bare(self, expr: ir.Expr, least: int = 0) -> str:
        """The expression; a small int64 literal goes without its kind where the context has it."""
        if isinstance(expr, ir.Const) and expr.dtype == "int64" and -(2**31) < int(expr.value.real) < 2**31:
            text, level = str(expr.value), ADD if int(expr.value.real) < 0 else PRIMARY
            return text if level >= least else f"({text})"
        if isinstance(expr, ir.Cast) and expr.dtype == "int64" and widens(expr.operand.dtype):
            return self.text(expr.operand, least)
        return self.text(expr, least)

    def render(self, expr: ir.Expr) -> tuple[str, int]:
        match expr:
            case ir.Const():
                return literal(expr)
            case ir.Name():
                return self.names[expr.name], PRIMARY
            case ir.Load():
                return self.load(expr)
            case ir.Cast():
                return self.cast(expr.operand, expr.operand.dtype, expr.dtype)
            case ir.Unary():
                return self.unary(expr)
            case ir.Binary():
                return self.binary(expr)
            case ir.Compare():
                return self.compare(expr)
            case ir.Logical():
                sign, level = (" .and. ", AND) if expr.op == "and" else (" .or. ", OR)
                return sign.join(self.text(operand, level + 1) for operand in expr.operands), level
            case ir.Select():
                return f"merge({self.listed((expr.then, expr.orelse, expr.test))})", PRIMARY
            case ir.Call():
                return self.call(expr)
            case ir.Invoke():
                return f"{self.names[expr.helper]}({self.listed(expr.args)})", PRIMARY

    def load(self, expr: ir.Load) -> tuple[str, int]:
        element, stored = self.element(expr.array, expr.index), self.function.arrays[expr.array].dtype
        if stored == "bool":
            return f"{element} /= 0", RELATION
        if stored in STORAGE:
            return f"{self.library.helper('from_bits', stored, f'from_{stored}')}({element})", PRIMARY
        kept = mask(stored)
        return (f"iand(int({element}, c_int64_t), {kept})" if kept else element), PRIMARY

    def stored(self, value: ir.Expr, dtype: str) -> str:
        """A value as an element of that dtype."""
        if dtype == "bool":
            return f"merge(1_c_int8_t, 0_c_int8_t, {self.text(value)})"
        if dtype in STORAGE:
            return f"{self.library.helper('to_bits', dtype, f'to_{dtype}')}({self.text(value)})"
        if mask(dtype):
            return f"int({self.text(value)}, {KINDS[dtype]})"
        return self.bare(value)

    def cast(self, operand: ir.Expr, source: str, target: str) -> tuple[str, int]:
        if target == "bool":
            return self.compare(ir.Compare("!=", operand, ir.Const(0, source)))
        text = self.text(operand)
        own = kind(target)
        if source == "bool":
            one, zero = (literal(ir.Const(value, target))[0] for value in (1, 0))
            return f"merge({one}, {zero}, {text})", PRIMARY
        if ir.is_complex(target):
            if source == "uint64":
                text = f"{self.library.helper('unsigned_real', 'float64', 'unsigned_real')}({text})"
            return f"cmplx({text}, kind={own})", PRIMARY
        if ir.is_float(target):
            if source == "uint64":
                return f"{self.library.helper('unsigned_real', target)}({text})", PRIMARY
            return f"real({text}, {own})", PRIMARY
        if source == "uint64" and mask(target):
            return f"iand({text}, {mask(target)})", PRIMARY
        if target == "uint64" and ir.is_float(source):
            return f"int(int({text}, wide), c_int64_t)", PRIMARY
        if kind(source) != own or not ir.is_integer(source):
            text = f"int({text}, {own})"
        elif mask(target) is None or (mask(source) and len(source) <= len(target) and source <= target):
            return self.render(operand)
        return (f"iand({text}, {mask(target)})" if mask(target) else text), PRIMARY

    def unary(self, expr: ir.Unary) -> tuple[str, int]:
        kept = mask(expr.dtype)
        if expr.op == "not":
            return f".not. {self.text(expr.operand, NOT + 1)}", NOT
        if expr.op == "~":
            text = f"not({self.text(expr.operand)})"
            return (f"iand({text}, {kept})" if kept else text), PRIMARY
        if kept:
            return f"iand(-{self.text(expr.operand, MULTIPLY)}, {kept})", PRIMARY
        if ir.is_integer(expr.dtype) and expr.wraps:
            zero = ir.Const(0, expr.dtype)
            return self.binary(ir.Binary("-", zero, expr.operand, expr.dtype, True))
        return f"-{self.text(expr.operand, MULTIPLY)}", ADD

    # ---- operators

    def binary(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype = expr.op, expr.dtype
        if dtype == "bool":
            sign, level = _LOGICAL[op]
            return f"{self.text(expr.left, level)} {sign} {self.text(expr.right, level + 1)}", level
        if ir.is_integer(dtype):
            return self.integers(expr)
        if op in ("//", "%"):
            return self.helper_call("real_mod" if op == "%" else "real_floor_div", expr)
        if op == "**":
            if expr.right == ir.Const(2.0, dtype):
                return f"{self.text(expr.left, PRIMARY)} ** 2", POWER
            if ir.is_complex(dtype):
                return self.helper_call("complex_power", expr)
            return f"{self.text(expr.left, PRIMARY)} ** {self.text(expr.right, PRIMARY)}", POWER
        return self.plainly(expr)

    def plainly(self, expr: ir.Binary) -> tuple[str, int]:
        level = ADD if expr.op in "+-" else MULTIPLY
        left, right = beside(expr.left, expr.right)
        both = isinstance(left, ir.Const) and isinstance(right, ir.Const)
        write = self.text if both else self.bare
        sign = "/" if expr.op == "//" else expr.op
        return f"{write(left, level)} {sign} {write(right, level + 1)}", level

    def helper_call(self, base: str, expr: ir.Binary) -> tuple[str, int]:
        name = self.library.helper(base, expr.dtype)
        return f"{name}({self.listed((expr.left, expr.right))})", PRIMARY

    def integers(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype = expr.op, expr.dtype
        kept = mask(dtype)
        if op in ("//", "%"):
            return self.division(expr)
        if op in _BITS:
            return f"{_BITS[op]}({self.listed((expr.left, expr.right))})", PRIMARY
        if op in ("<<", ">>"):
            text = self.shift(expr)
        elif op == "**":
            text = self.helper_call("power", ir.Binary(op, expr.left, expr.right, _computed(dtype)))[0]
        elif not expr.wraps or (kept and not (op == "*" and dtype == "uint32")):
            text, level = self.plainly(expr)
            if not kept:
                return text, level
        else:
            text = self.helper_call(_WRAPPING[op], ir.Binary(op, expr.left, expr.right, _computed(dtype)))[0]
        cut = kept and op != ">>"
        return (f"iand({text}, {kept})" if cut else text), PRIMARY

    def shift(self, expr: ir.Binary) -> str:
        dtype, count = expr.dtype, expr.right
        width = bits(dtype)
        if isinstance(count, ir.Const) and 0 <= int(count.value.real) < width:
            name = "shiftl" if expr.op == "<<" else "shiftr" if dtype.startswith("u") else "shifta"
            return f"{name}({self.text(expr.left)}, {count.value})"
        return self.helper_call("shift_left" if expr.op == "<<" else "shift_right", expr)[0]

    def division(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype, left, right = expr.op, expr.dtype, expr.left, expr.right
        if dtype == "uint64":
            return self.helper_call("unsigned_div" if op == "//" else "unsigned_mod", expr)
        positive = isinstance(right, ir.Const) and int(right.value.real) > 0
        plain = (dtype == "int64" and self.signs.divides_plainly(left, right)) or (mask(dtype) and positive)
        if plain and op == "//":
            return self.plainly(expr)
        if plain or (positive and op == "%"):
            return f"{'mod' if plain else 'modulo'}({self.listed((left, right))})", PRIMARY
        base = "floor_div" if op == "//" else "floor_mod"
        return self.helper_call(base, ir.Binary(op, left, right, _computed(dtype)))

    def compare(self, expr: ir.Compare) -> tuple[str, int]:
        op, dtype = expr.op, expr.left.dtype
        if dtype == "bool":
            sign = ".eqv." if op == "==" else ".neqv."
            return f"{self.text(expr.left, OR)} {sign} {self.text(expr.right, OR)}", EQUIVALENT
        if dtype == "uint64" and op in _UNSIGNED:
            return f"{_UNSIGNED[op]}({self.listed((expr.left, expr.right))})", PRIMARY
        if op in ("==", "!=") and not ir.is_integer(dtype):
            return self.equality(expr)
        left, right = beside(expr.left, expr.right)
        both = isinstance(left, ir.Const) and isinstance(right, ir.Const)
        write = self.text if both else self.bare
        sign = "/=" if op == "!=" else op
        return f"{write(left, RELATION + 1)} {sign} {write(right, RELATION + 1)}", RELATION

    def equality(self, expr: ir.Compare) -> tuple[str, int]:
        """Reals are the same when neither is below the other; nothing equals a NaN."""
        left, right = expr.left, expr.right
        same: ir.Expr
        if ir.is_complex(left.dtype):
            part = "float32" if left.dtype == "complex64" else "float64"
            parts = [
                ir.Compare("==", ir.Call(name, (left,), part), ir.Call(name, (right,), part))
                for name in ("real", "imag")
            ]
            same = ir.Logical("and", tuple(parts))
        elif left == right and is_simple(left):
            same = ir.Compare("<=", left, left)
        elif is_simple(left) and is_simple(right):
            same = ir.Logical("and", (ir.Compare("<=", left, right), ir.Compare(">=", left, right)))
        else:
            text = f"{self.library.helper('same', left.dtype)}({self.listed((left, right))})"
            return (text, PRIMARY) if expr.op == "==" else (f".not. {text}", NOT)
        return self.render(same if expr.op == "==" else ir.Unary("not", same, "bool"))

    # ---- functions

    def call(self, expr: ir.Call) -> tuple[str, int]:
        name, args, dtype = expr.function, expr.args, expr.dtype
        if name in ("minimum", "maximum", "min", "max"):
            return self.extremum(expr), PRIMARY
        if name == "abs" and ir.is_integer(dtype):
            if dtype.startswith("u"):
                return self.render(args[0])
            return f"{self.library.helper('absolute', dtype)}({self.listed(args)})", PRIMARY
        if name in _ROUNDING:
            return f"{self.library.helper(_ROUNDING[name], dtype)}({self.listed(args)})", PRIMARY
        if name in fortran_helpers.LIBM:
            return f"{self.library.libm(name, dtype, len(args))}({self.listed(args)})", PRIMARY
        if name == "real":
            return f"real({self.text(args[0])}, {kind(dtype)})", PRIMARY
        return f"{_SPELLED.get(name, name)}({self.listed(args)})", PRIMARY

    def extremum(self, expr: ir.Call) -> str:
        first, second = expr.args
        least = expr.function.startswith("min")
        if expr.dtype == "uint64":
            test = ir.Compare("<" if least else ">", second, first)
            return f"merge({self.listed((second, first, test))})"
        if ir.is_integer(expr.dtype):
            return f"{'min' if least else 'max'}({self.listed(expr.args)})"
        base = {"min": "smaller", "max": "larger"}.get(expr.function, expr.function)
        return f"{self.library.helper(base, expr.dtype)}({self.listed(expr.args)})"


def _computed(dtype: str) -> str:
    """The dtype whose helper serves ``dtype``: that of the kind it is computed in."""
    return "int64" if dtype.startswith("u") else dtype
