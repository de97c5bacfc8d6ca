"""From the typed form to a numba module: the reference's loops under ``njit``, one of them parallel."""

from __future__ import annotations

import math

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.dependence import Verdict
from hpcagent_bench.translators.numba_helpers import HELPERS
from hpcagent_bench.translators.signs import Signs
from hpcagent_bench.translators.writing import (
    INDENT,
    Names,
    Source,
    Writer,
    as_function,
    elif_chain,
    in_place,
    is_simple,
    widest,
)

SELECT, OR, AND, NOT, RELATION, BIT_OR, BIT_XOR, BIT_AND, SHIFT, ADD, MULTIPLY, UNARY, POWER, PRIMARY = range(
    1, 15
)
_LEVEL = {
    **{"*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "+": ADD, "-": ADD, "**": POWER},
    **{"<<": SHIFT, ">>": SHIFT, "&": BIT_AND, "^": BIT_XOR, "|": BIT_OR},
}
_VIEWS = {"float16": "uint16", "bfloat16": "uint16", "float8_e4m3": "uint8", "float8_e5m2": "uint8"}
_RESERVED = frozenset(["np", "njit", "prange", "abs", "min", "max", "range", "int"])


def emit(source: Source) -> str:
    """A module text with the reference's name and parameter order.

    At most one ``range`` becomes ``prange``. The text must stand in a file of its own, where numba keeps its
    compiled code. Arrays of formats that numba lacks are taken as the integers they are stored in.
    """
    function = source.function
    names = Names(_spelled)
    names.add((function.name, *function.arg_order, *function.arrays, *function.locals))
    names.add(helper.name for helper in function.helpers)
    names.add(stmt.var for stmt in ir.statements(function.body) if isinstance(stmt, ir.For))
    library = Library(names)
    helpers = [_helper(helper, library) for helper in function.helpers]
    writer = NumbaWriter(function, names, source.signs, library, source.parallel)
    body = writer.whole() or [f"{INDENT}pass"]
    viewed = [name for name in function.arg_order if name in function.arrays and _views(function, name)]
    name = names.fresh(f"{function.name}_jitted") if viewed else function.name
    arguments = ", ".join(names[argument] for argument in function.arg_order)
    parallel = source.parallel is not None  # numba warns when it is asked for parallelism it cannot find
    lines = [
        f"# {source.title}",
        "import numpy as np",
        f"from numba import {'njit, prange' if parallel else 'njit'}",
        "",
        *library.texts,
        *helpers,
        "",
        f'@njit(parallel={parallel}, cache=True, fastmath=False, error_model="numpy")',
        f"def {name}({arguments}):",
        *body,
        "",
    ]
    if viewed:
        lines += _entry(function, names, name)
    return "\n".join(lines)


def _spelled(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _views(function: ir.Function, name: str) -> bool:
    return function.arrays[name].dtype in _VIEWS


def _entry(function: ir.Function, names: Names, jitted: str) -> list[str]:
    """The function of the reference's name, for arrays whose dtype numba does not know."""
    passed = []
    for argument in function.arg_order:
        name = names[argument]
        stored = function.arrays[argument].dtype if argument in function.arrays else ""
        passed.append(f"{name}.view(np.{_VIEWS[stored]})" if stored in _VIEWS else name)
    arguments = ", ".join(names[argument] for argument in function.arg_order)
    return ["", f"def {function.name}({arguments}):", f"{INDENT}{jitted}({', '.join(passed)})", ""]


def _helper(helper: ir.Helper, library: Library) -> str:
    """A helper function of the reference, jitted."""
    function = as_function(helper)
    names = Names(_spelled)
    names.add((*helper.params, *helper.locals, *library.known))
    names.add(stmt.var for stmt in ir.statements(helper.body) if isinstance(stmt, ir.For))
    writer = NumbaWriter(function, names, Signs({}), library)
    params = ", ".join(names[name] for name in helper.params)
    return "\n".join(["", "@njit", f"def {library.names[helper.name]}({params}):", *writer.whole(), ""])


class Library:
    """Helper functions a module needs, in the order of their first use."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.texts: list[str] = []
        self.known: dict[str, str] = {}

    def helper(self, base: str, dtype: str, name: str | None = None) -> str:
        """The name of a helper for ``dtype``, which is written out once."""
        wanted = name or widest(base, dtype)
        if wanted not in self.known:
            self.known[wanted] = spelled = self.names.fresh(wanted)
            bits = "".join(character for character in dtype if character.isdigit())
            text = HELPERS[base].replace("$name", spelled).replace("$T", f"np.{dtype}")
            self.texts.append(text.replace("$bits", bits))
        return self.known[wanted]


class NumbaWriter(Writer):
    """Writes statements and expressions; what numba would widen is cut back to its dtype."""

    def __init__(
        self,
        function: ir.Function,
        names: Names,
        signs: Signs,
        library: Library,
        parallel: Verdict | None = None,
    ) -> None:
        super().__init__(function, names, signs)
        self.library = library
        self.parallel = parallel

    def whole(self) -> list[str]:
        """The body; scalars that are not of Python's own types get theirs first."""
        typed = [
            f"{INDENT}{self.names[name]} = np.{ir.computes_in(dtype)}({self.names[name]})"
            for name, dtype in self.function.scalars.items()
            if name in self.function.arg_order and dtype not in ("int64", "float64", "bool")
        ]
        return [*typed, *self.block(self.function.body)]

    # ---- statements

    def body(self, lines: list[str]) -> list[str]:
        return lines or [f"{INDENT}pass"]

    def assign(self, stmt: ir.Assign) -> list[str]:
        added = in_place(stmt)
        if added is not None and not _widened(added.dtype) and self.helper_for(added) is None:
            return [f"{self.names[stmt.name]} {added.op}= {self.text(_beside(added.left, added.right)[1])}"]
        return [f"{self.names[stmt.name]} = {self.text(stmt.value)}"]

    def store(self, stmt: ir.Store) -> list[str]:
        stored = self.function.arrays[stmt.array].dtype
        added = in_place(stmt)
        if (
            added is not None
            and stored == added.dtype
            and not _widened(stored)
            and not self.helper_for(added)
        ):
            right = _beside(added.left, added.right)[1]
            return [f"{self.element(stmt.array, stmt.index)} {added.op}= {self.text(right)}"]
        value = self.text(stmt.value)
        if stored in _VIEWS:
            value = f"{self.library.helper(f'to_{stored}', 'float32', f'to_{stored}')}({value})"
        return [f"{self.element(stmt.array, stmt.index)} = {value}"]

    def loop(self, stmt: ir.For) -> list[str]:
        chosen = self.parallel is not None and self.parallel.loop is stmt
        bounds = [self.text(stmt.stop)]
        if stmt.start != ir.Const(0, "int64") or not stmt.unit:
            bounds.insert(0, self.text(stmt.start))
        if not stmt.unit:
            bounds.append(self.text(stmt.step))
        over = f"{'prange' if chosen else 'range'}({', '.join(bounds)})"
        return [f"for {self.names[stmt.var]} in {over}:", *self.body(self.inside(stmt))]

    def repeat(self, stmt: ir.While) -> list[str]:
        return [f"while {self.text(stmt.test)}:", *self.body(self.block(stmt.body))]

    def branch(self, stmt: ir.If) -> list[str]:
        chain, rest = elif_chain(stmt)
        lines: list[str] = []
        for test, body in chain:
            lines += [f"{'elif' if lines else 'if'} {self.text(test)}:", *self.body(self.block(body))]
        return [*lines, "else:", *self.block(rest)] if rest else lines

    def allocate(self, stmt: ir.Allocate) -> list[str]:
        array = self.function.arrays[stmt.array]
        extents = self.listed(array.shape)
        shape = extents if len(array.shape) == 1 else f"({extents})"
        dtype = {"bool": "bool_", "int4": "int8"}.get(array.dtype, _VIEWS.get(array.dtype, array.dtype))
        return [f"{self.names[stmt.array]} = np.{'zeros' if stmt.zeroed else 'empty'}({shape}, np.{dtype})"]

    def jump(self, stmt: ir.Jump) -> list[str]:
        return [stmt.kind]

    def leave(self, stmt: ir.Return) -> list[str]:
        return ["return" if stmt.value is None else f"return {self.text(stmt.value)}"]

    # ---- expressions

    def element(self, name: str, index: tuple[ir.Expr, ...]) -> str:
        return f"{self.names[name]}[{', '.join(self.text(_bare(axis)) for axis in index)}]"

    def render(self, expr: ir.Expr) -> tuple[str, int]:
        match expr:
            case ir.Const():
                return _literal(expr)
            case ir.Name():
                return self.names[expr.name], PRIMARY
            case ir.Load():
                element, stored = self.element(expr.array, expr.index), self.function.arrays[expr.array].dtype
                if stored in _VIEWS:
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
                left, right = (_plain(side) for side in _beside(expr.left, expr.right))
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
        return (f"np.{expr.dtype}({text})", PRIMARY) if _widened(expr.dtype) else (text, UNARY)

    def binary(self, expr: ir.Binary) -> tuple[str, int]:
        op, dtype = expr.op, expr.dtype
        helper = self.helper_for(expr)
        if helper is not None:
            return f"{self.library.helper(helper, dtype)}({self.listed((expr.left, expr.right))})", PRIMARY
        if _wraps_narrow(expr):
            return f"np.{dtype}({self.uncut(expr)[0]})", PRIMARY
        level = _LEVEL[op]
        left, right = _beside(expr.left, expr.right)
        if op == "**":
            text = f"{self.text(left, PRIMARY)} ** {self.text(right, UNARY)}"
        else:
            text = f"{self.text(left, level)} {op} {self.text(right, level + 1)}"
        return (f"np.{dtype}({text})", PRIMARY) if ir.is_integer(dtype) and _widened(dtype) else (text, level)

    def uncut(self, expr: ir.Expr) -> tuple[str, int]:
        """Signed arithmetic of a narrow dtype in numba's own 64 bits: cut back once, at the end."""
        if isinstance(expr, ir.Const):
            return str(expr.value), UNARY if int(expr.value.real) < 0 else PRIMARY
        if not isinstance(expr, ir.Binary) or not _wraps_narrow(expr):
            return self.render(expr)
        level = _LEVEL[expr.op]
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
        if op in ("<<", ">>") and not (isinstance(constant, int) and 0 <= constant < _bits(dtype)):
            return "shift_left" if op == "<<" else "shift_right"
        return None

    def call(self, expr: ir.Call) -> tuple[str, int]:
        name, args = expr.function, expr.args
        if name in ("min", "max"):
            first, second = args
            if not (is_simple(first) and is_simple(second)):
                base = "smaller" if name == "min" else "larger"
                return f"{self.library.helper(base, expr.dtype, base)}({self.listed(args)})", PRIMARY
            a, b = self.text(first, RELATION + 1), self.text(second, RELATION + 1)
            return f"{b} if {b} {'<' if name == 'min' else '>'} {a} else {a}", SELECT
        if name == "abs":
            text = f"abs({self.listed(args)})"
            return (f"np.{expr.dtype}({text})" if _widened(expr.dtype) else text), PRIMARY
        if name in ("real", "imag"):
            return f"{self.text(args[0], PRIMARY)}.{name}", PRIMARY
        text = f"np.{name}({self.listed(args)})"
        return (f"np.{expr.dtype}({text})" if _widened(expr.dtype) else text), PRIMARY


def _literal(expr: ir.Const) -> tuple[str, int]:
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


def _plain(expr: ir.Expr) -> ir.Expr:
    """A literal beside which numba compares integers of any width, so that it needs no dtype."""
    if isinstance(expr, ir.Const) and ir.is_integer(expr.dtype) and expr.dtype != "uint64":
        return ir.Const(expr.value, "int64")
    return expr


def _wraps_narrow(expr: ir.Binary) -> bool:
    return expr.wraps and expr.op in ("+", "-", "*") and expr.dtype in ("int8", "int16", "int32")


def _widened(dtype: str) -> bool:
    """Whether numba's operators give something wider than ``dtype``."""
    return ir.is_integer(dtype) and dtype != "int64"


def _bits(dtype: str) -> int:
    return int("".join(character for character in dtype if character.isdigit()))


def _bare(expr: ir.Expr) -> ir.Expr:
    """An index without a conversion to int64, which numba makes by itself."""
    integer = isinstance(expr, ir.Cast) and expr.dtype == "int64" and ir.is_integer(expr.operand.dtype)
    return expr.operand if isinstance(expr, ir.Cast) and integer and expr.operand.dtype != "uint64" else expr


def _beside(left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
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
