"""From the typed form to one plain C99 function: flat row-major indices, canonical loops, no macros."""

from __future__ import annotations

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import abi
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.scopes import scopes

_PRECEDENCE = {"*": 10, "/": 10, "+": 9, "-": 9, "<": 8, "<=": 8, ">": 8, ">=": 8, "==": 7, "!=": 7}
_AND, _OR, _SELECT, _UNARY, _PRIMARY = 6, 5, 4, 11, 12
_LOCAL_TYPES = {"int64": "int64_t", "bool": "int", "float64": "double", "float32": "float"}
_SPELLED = {"arctan2": "atan2", "power": "pow"}
_INDENT = "    "

_FLOOR_DIV = """static inline int64_t floor_div(const int64_t a, const int64_t b)
{
    const int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
"""
_FLOOR_MOD = """static inline int64_t floor_mod(const int64_t a, const int64_t b)
{
    const int64_t r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
"""
_HELPERS = {"//": ("floor_div", _FLOOR_DIV), "%": ("floor_mod", _FLOOR_MOD)}
"""Python's integer division rounds down, C's toward zero."""


def emit(kernel: Kernel, function: ir.Function, datatype: str = "float64") -> str:
    """The C source of ``function``: the kernel's symbol with the parameters of abi.c_declaration."""
    writer = _Writer(function)
    body = [*writer.opening(), *writer.block(function.body, 1)]
    temporaries = [abi.c_name(array.name) for array in function.arrays.values() if array.local]
    body += [f"{_INDENT}free({name});" for name in temporaries]
    includes = ["#include <stdint.h>"]
    if writer.uses_math:
        includes.append("#include <math.h>")
    if temporaries:
        includes.append("#include <stdlib.h>")
    helpers = [text for _, text in (_HELPERS[op] for op in sorted(writer.helpers))]
    declaration = abi.c_declaration(abi.binding(kernel, datatype))
    header = f"/* {kernel.name}: from {kernel.numpy_source.name} */"
    return "\n".join([header, *includes, *helpers, declaration, "{", *body, "}", ""])


class _Writer:
    """Writes statements and expressions, and notes which headers and helpers they need."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.scopes = scopes(function)
        self.helpers: set[str] = set()
        self.uses_math = False
        self.taken = {*function.scalars, *function.locals, *function.arrays}

    # ---- statements

    def opening(self) -> list[str]:
        """Locals whose first value depends on the path taken start as zero."""
        types = self.function.locals
        return [f"{_INDENT}{_LOCAL_TYPES[types[name]]} {name} = 0;" for name in self.scopes.top]

    def block(self, body: tuple[ir.Stmt, ...], depth: int) -> list[str]:
        return [f"{_INDENT * depth}{line}" for stmt in body for line in self.statement(stmt)]

    def statement(self, stmt: ir.Stmt) -> list[str]:
        match stmt:
            case ir.Assign():
                declared = f"{_LOCAL_TYPES[self.function.locals[stmt.name]]} " if self.declares(stmt) else ""
                return [f"{declared}{stmt.name} = {self.text(stmt.value)};"]
            case ir.Store():
                value = self.text(stmt.value)
                if self.function.arrays[stmt.array].dtype == "bool" and stmt.value.dtype != "bool":
                    value = f"{self.text(stmt.value, _PRECEDENCE['!='] + 1)} != 0"
                return [f"{self.element(stmt.array, stmt.index)} = {value};"]
            case ir.For():
                return self.loop(stmt)
            case ir.If():
                return self.branch(stmt)
            case ir.Allocate():
                return [self.allocation(stmt)]
            case ir.Jump():
                return [f"{stmt.kind};"]

    def declares(self, stmt: ir.Assign) -> bool:
        return id(stmt) in self.scopes.declaring

    def loop(self, stmt: ir.For) -> list[str]:
        lines = []
        stop = self.text(stmt.stop, _PRECEDENCE["<"] + 1)
        if ir.reads(stmt.stop) & ir.assigned(stmt.body):  # range() reads its bounds once
            name = self.fresh(f"{stmt.var}_stop")
            lines.append(f"const int64_t {name} = {self.text(stmt.stop)};")
            stop = name
        compare = "<" if stmt.step > 0 else ">"
        step = {1: f"{stmt.var}++", -1: f"{stmt.var}--"}.get(stmt.step)
        if step is None:
            step = f"{stmt.var} {'+' if stmt.step > 0 else '-'}= {abs(stmt.step)}"
        start = self.text(stmt.start)
        lines.append(f"for (int64_t {stmt.var} = {start}; {stmt.var} {compare} {stop}; {step}) {{")
        return [*lines, *self.block(stmt.body, 1), "}"]

    def branch(self, stmt: ir.If) -> list[str]:
        lines = [f"if ({self.text(stmt.test)}) {{", *self.block(stmt.body, 1)]
        rest = stmt.orelse
        while len(rest) == 1 and isinstance(rest[0], ir.If):
            lines += [f"}} else if ({self.text(rest[0].test)}) {{", *self.block(rest[0].body, 1)]
            rest = rest[0].orelse
        if rest:
            lines += ["} else {", *self.block(rest, 1)]
        return [*lines, "}"]

    def allocation(self, stmt: ir.Allocate) -> str:
        array = self.function.arrays[stmt.array]
        element = abi.C_TYPES[array.dtype]
        count = " * ".join(self.text(extent, _PRECEDENCE["*"] + 1) for extent in array.shape) or "1"
        size = f"(size_t)({count})"
        call = f"calloc({size}, sizeof({element}))" if stmt.zeroed else f"malloc({size} * sizeof({element}))"
        return f"{element} *restrict {array.name} = ({element} *){call};"

    def fresh(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        return name

    # ---- expressions

    def element(self, name: str, index: tuple[ir.Expr, ...]) -> str:
        """``aa[i, j]`` with shape (N, M) is ``aa[i * M + j]``."""
        shape = self.function.arrays[name].shape
        flat: ir.Expr = index[0]
        for axis, extent in zip(index[1:], shape[1:], strict=True):
            scaled = ir.Binary("*", flat, extent, "int64")
            flat = _plus(scaled, axis)
        return f"{abi.c_name(name)}[{self.text(flat)}]"

    def text(self, expr: ir.Expr, least: int = 0) -> str:
        """The expression, in parentheses when it binds less tightly than ``least``."""
        written, precedence = self.render(expr)
        return written if precedence >= least else f"({written})"

    def render(self, expr: ir.Expr) -> tuple[str, int]:
        match expr:
            case ir.Const():
                return _constant(expr)
            case ir.Name():
                return abi.c_name(expr.name), _PRIMARY
            case ir.Load():
                return self.element(expr.array, expr.index), _PRIMARY
            case ir.Unary():
                sign = "!" if expr.op == "not" else "-"
                return f"{sign}{self.text(expr.operand, _UNARY + 1)}", _UNARY
            case ir.Binary():
                return self.binary(expr)
            case ir.Compare():
                level = _PRECEDENCE[expr.op]
                left, right = self.text(expr.left, level + 1), self.text(expr.right, level + 1)
                return f"{left} {expr.op} {right}", level
            case ir.Logical():
                level, sign = (_AND, " && ") if expr.op == "and" else (_OR, " || ")
                return sign.join(self.text(operand, _AND + 1) for operand in expr.operands), level
            case ir.Select():
                parts = [self.text(part, _SELECT + 1) for part in (expr.test, expr.then, expr.orelse)]
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", _SELECT
            case ir.Call():
                return self.call(expr)

    def binary(self, expr: ir.Binary) -> tuple[str, int]:
        if expr.op in _HELPERS:
            self.helpers.add(expr.op)
            return f"{_HELPERS[expr.op][0]}({self.text(expr.left)}, {self.text(expr.right)})", _PRIMARY
        if expr.op == "**":
            return self.function_call("pow", (expr.left, expr.right), expr.dtype)
        level = _PRECEDENCE[expr.op]
        left, right = self.text(expr.left, level), self.text(expr.right, level + 1)
        if expr.op == "/" and not ir.is_float(ir.promote(expr.left.dtype, expr.right.dtype)):
            left = f"({abi.C_TYPES[expr.dtype]}){self.text(expr.left, _UNARY)}"
        return f"{left} {expr.op} {right}", level

    def call(self, expr: ir.Call) -> tuple[str, int]:
        level = _SELECT + 1
        if expr.function == "abs":
            if ir.is_float(expr.dtype):
                return self.function_call("fabs", expr.args, expr.dtype)
            value = ir.Compare("<", expr.args[0], ir.Const(0, "int64"))
            return self.render(ir.Select(value, ir.Unary("-", expr.args[0], "int64"), expr.args[0], "int64"))
        if expr.function in ("min", "max", "minimum", "maximum"):
            return self.extremum(expr), level - 1
        return self.function_call(_SPELLED.get(expr.function, expr.function), expr.args, expr.dtype)

    def extremum(self, expr: ir.Call) -> str:
        """Python keeps the first operand unless the second beats it; NumPy passes a NaN of either on."""
        first, second = (self.text(arg, _PRECEDENCE["<"] + 1) for arg in expr.args)
        sign = "<" if expr.function.startswith("min") else ">"
        if expr.function in ("min", "max") or not ir.is_float(expr.dtype):
            return f"{second} {sign} {first} ? {second} : {first}"
        return f"{first} {sign}= {second} || {first} != {first} ? {first} : {second}"

    def function_call(self, name: str, args: tuple[ir.Expr, ...], dtype: str) -> tuple[str, int]:
        self.uses_math = True
        suffix = "f" if dtype == "float32" else ""
        return f"{name}{suffix}({', '.join(self.text(arg) for arg in args)})", _PRIMARY


def _plus(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """An integer sum written from left to right, so that ``i * M + (j - 1)`` needs no parentheses."""
    if right == ir.Const(0, "int64"):
        return left
    if isinstance(right, ir.Binary) and right.op in "+-":
        return ir.Binary(right.op, _plus(left, right.left), right.right, "int64")
    return ir.Binary("+", left, right, "int64")


def _constant(expr: ir.Const) -> tuple[str, int]:
    if isinstance(expr.value, bool):
        return str(int(expr.value)), _PRIMARY
    level = _UNARY if expr.value < 0 else _PRIMARY
    if isinstance(expr.value, float):
        return f"{expr.value!r}{'f' if expr.dtype == 'float32' else ''}", level
    return f"{expr.value}{'' if abs(expr.value) < 2**31 else 'LL'}", level
