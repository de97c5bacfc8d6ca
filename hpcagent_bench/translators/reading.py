"""Expressions of a reference: names, element loads, arithmetic and functions, each typed as it is read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench.corpus import expressions
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.translators import ir

FUNCTIONS = {
    **dict.fromkeys(("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"), 1),
    **{"floor": 1, "ceil": 1, "arctan2": 2, "hypot": 2, "power": 2},
}
"""Functions of ``np`` on floats, with their number of arguments; abs, min and max are covered besides."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_INT_LIMIT = 2**63


class Unsupported(UserError):
    """A construct of a reference the translators do not cover: ``file``, ``line`` and ``construct``."""

    def __init__(self, file: Path, line: int, construct: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {construct} is not covered by the translators", hint)
        self.file = file
        self.line = line
        self.construct = construct


@dataclass
class ExpressionReader:
    """Reads expressions under what is known at a point of the text: arrays, scalars, locals, open loops."""

    kernel: Kernel
    datatype: str
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    locals: dict[str, str] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)  # locals with an assignment above this point of the text
    loops: list[str] = field(default_factory=list)  # indices of the loops around this point
    finished: set[str] = field(default_factory=set)  # indices of loops above, dead by the corpus rules
    depth: int = 0  # enclosing loops and branches

    def __post_init__(self) -> None:
        dtypes = self.kernel.dtypes(self.datatype)
        self.scalars = {name: dtypes[name] for name in self.kernel.scalars({})}
        for name in self.kernel.arrays:
            if dtypes[name].startswith(("complex", "float16")):
                raise Unsupported(self.kernel.numpy_source, 1, f"array '{name}' of {dtypes[name]}")
            self.arrays[name] = ir.Array(name, dtypes[name], (), local=False)
        for name, declared in self.kernel.arrays.items():
            shape = tuple(
                self.expr(ast.parse(axis, mode="eval").body) for axis in expressions.axes(declared.shape)
            )
            self.arrays[name] = ir.Array(name, dtypes[name], shape, local=False)

    def restart(self) -> None:
        """Forget what one pass saw, except the dtypes it found."""
        self.arrays = {name: array for name, array in self.arrays.items() if not array.local}
        self.assigned.clear()
        self.finished.clear()

    def refusal(self, node: ast.AST, construct: str, hint: str = "") -> Unsupported:
        return Unsupported(self.kernel.numpy_source, getattr(node, "lineno", 1), construct, hint)

    def integer(self, node: ast.expr) -> ir.Expr:
        value = self.expr(node)
        if value.dtype != "int64":
            raise self.refusal(node, f"'{text(node)}' ({value.dtype}) where an integer is needed")
        return value

    def condition(self, node: ast.expr) -> ir.Expr:
        value = self.expr(node)
        if value.dtype == "bool":
            return value
        return ir.Compare("!=", value, ir.Const(0, "int64"))

    def element(self, node: ast.Subscript) -> tuple[str, tuple[ir.Expr, ...]]:
        if not isinstance(node.value, ast.Name) or node.value.id not in self.arrays:
            raise self.refusal(node, f"'{text(node)}'", "index an array argument by one integer per axis")
        array = self.arrays[node.value.id]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(array.shape) or any(
            isinstance(part, (ast.Slice, ast.Starred)) for part in parts
        ):
            raise self.refusal(
                node, f"'{text(node)}'", f"'{array.name}' takes {len(array.shape)} integer indices"
            )
        index = tuple(self.integer(part) for part in parts)
        for part, axis in zip(parts, index, strict=True):
            if isinstance(axis, ir.Const) and axis.value < 0:
                raise self.refusal(part, f"the negative index in '{text(node)}'", "count from the front")
        return array.name, index

    def expr(self, node: ast.expr) -> ir.Expr:
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return self.name(node)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=axis)
            ):
                return self.extent(node, name, axis)
            case ast.Subscript():
                array, index = self.element(node)
                stored = self.arrays[array].dtype
                return ir.Load(array, index, stored if stored.startswith(("float", "bool")) else "int64")
            case ast.UnaryOp():
                return self.unary(node)
            case ast.BinOp() if type(node.op) in _BINARY:
                return self.binary(node)
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                operands = tuple(self.condition(value) for value in node.values)
                return ir.Logical("and" if isinstance(node.op, ast.And) else "or", operands)
            case ast.IfExp():
                then, orelse = self.expr(node.body), self.expr(node.orelse)
                dtype = ir.promote(then.dtype, orelse.dtype)
                return ir.Select(self.condition(node.test), then, orelse, dtype)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def constant(self, node: ast.Constant) -> ir.Expr:
        value = node.value
        if isinstance(value, bool):
            return ir.Const(value, "bool")
        if isinstance(value, int) and -_INT_LIMIT < value < _INT_LIMIT:
            return ir.Const(value, "int64")
        if isinstance(value, float) and abs(value) != float("inf"):
            return ir.Const(value, self.datatype)
        raise self.refusal(node, f"the constant '{text(node)}'")

    def name(self, node: ast.Name) -> ir.Expr:
        name = node.id
        if name in self.loops:
            return ir.Name(name, "int64")
        if name in self.scalars:
            return ir.Name(name, self.scalars[name])
        if name in self.assigned:
            return ir.Name(name, self.locals[name])
        if name in self.finished:
            raise self.refusal(node, f"'{name}' after its loop", "keep the value in a variable of its own")
        if name in self.arrays:
            raise self.refusal(node, f"array '{name}' as a whole", "write the loop over its elements")
        raise self.refusal(node, f"'{name}', which has no value here,")

    def extent(self, node: ast.expr, name: str, axis: object) -> ir.Expr:
        array = self.arrays.get(name)
        if array is None or not isinstance(axis, int) or not 0 <= axis < len(array.shape):
            raise self.refusal(node, f"'{text(node)}'")
        return array.shape[axis]

    def unary(self, node: ast.UnaryOp) -> ir.Expr:
        if isinstance(node.op, ast.Not):
            return ir.Unary("not", self.condition(node.operand), "bool")
        operand = self.expr(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        if not isinstance(node.op, ast.USub):
            raise self.refusal(node, f"'{text(node)}'")
        if isinstance(operand, ir.Const) and not isinstance(operand.value, bool):
            return ir.Const(-operand.value, operand.dtype)
        return ir.Unary("-", operand, ir.promote(operand.dtype, "int64"))

    def binary(self, node: ast.BinOp) -> ir.Expr:
        op = _BINARY[type(node.op)]
        left, right = self.expr(node.left), self.expr(node.right)
        dtype = ir.promote(left.dtype, right.dtype, "int64")
        if op == "/":
            dtype = ir.promote(dtype, self.datatype if dtype == "int64" else dtype)
        if op in ("//", "%") and dtype != "int64":
            raise self.refusal(node, f"'{text(node)}' on floats", "use it on integers")
        if op == "**" and not ir.is_float(dtype):
            raise self.refusal(node, f"'{text(node)}' on integers", "write the product")
        if op in "+-*" and isinstance(left, ir.Const) and isinstance(right, ir.Const) and dtype == "int64":
            return ir.Const(_fold(op, int(left.value), int(right.value)), dtype)
        return ir.Binary(op, left, right, dtype)

    def comparison(self, node: ast.Compare) -> ir.Expr:
        if any(type(op) not in _COMPARE for op in node.ops):
            raise self.refusal(node, f"'{text(node)}'")
        terms = [self.expr(term) for term in (node.left, *node.comparators)]
        pairs = zip(node.ops, terms[:-1], terms[1:], strict=True)
        parts = tuple(ir.Compare(_COMPARE[type(op)], left, right) for op, left, right in pairs)
        return parts[0] if len(parts) == 1 else ir.Logical("and", parts)

    def call(self, node: ast.Call) -> ir.Expr:
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                known = {"abs": 1, "min": 2, "max": 2}.get(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), keywords=[]):
                known = {"abs": 1, "minimum": 2, "maximum": 2, **FUNCTIONS}.get(name)
            case _:
                raise self.refusal(node, f"'{text(node)}'")
        if known is None or known != len(node.args):
            raise self.refusal(node, f"'{text(node)}'")
        args = tuple(self.expr(arg) for arg in node.args)
        dtype = ir.promote(*(arg.dtype for arg in args), "int64")
        if name in FUNCTIONS and dtype == "int64":
            dtype = self.datatype
        return ir.Call(name, args, dtype)


def _fold(op: str, left: int, right: int) -> int:
    return left + right if op == "+" else left - right if op == "-" else left * right


def text(node: ast.AST) -> str:
    """The construct as one short line."""
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 60 else f"{line[:57]}..."
