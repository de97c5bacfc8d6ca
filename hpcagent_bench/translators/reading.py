"""Expressions of a reference on single values: names, element loads, arithmetic and functions, each typed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench.corpus import expressions
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.translators import functions, ir, promotion
from hpcagent_bench.translators.promotion import Mismatch, Operand

_BINARY: dict[type[ast.operator], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
}
_COMPARE: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045, "euler_gamma": 0.5772156649015329}


class Unsupported(UserError):
    """A construct of a reference the translators do not cover: ``file``, ``line`` and ``construct``."""

    def __init__(self, file: Path, line: int, construct: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {construct} is not covered by the translators", hint)
        self.file = file
        self.line = line
        self.construct = construct


@dataclass
class ExpressionReader:
    """Reads expressions under what is known at a point of the text: arrays, scalars, locals, open loops.

    ``locals`` maps a local scalar to its dtype and to whether it only ever holds Python's own numbers; it is
    right once all assignments have been seen. ``out`` is the block under construction, to which an expression
    may add statements that have to run before it.
    """

    kernel: Kernel
    datatype: str
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    scalars: dict[str, Operand] = field(default_factory=dict)
    locals: dict[str, tuple[str, bool]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)  # locals with an assignment above this point of the text
    loops: list[str] = field(default_factory=list)  # indices of the loops around this point
    finished: set[str] = field(default_factory=set)  # indices of loops above, dead by the corpus rules
    out: list[ir.Stmt] = field(default_factory=list)

    def declare(self) -> None:
        """The kernel's own arguments, as the manifest declares them."""
        dtypes = self.kernel.dtypes(self.datatype)
        for name in self.kernel.scalars({}):
            self.scalars[name] = Operand(ir.Name(name, dtypes[name]), weak=True)
        for name, declared in self.kernel.arrays.items():
            axes = [ast.parse(axis, mode="eval").body for axis in expressions.axes(declared.shape)]
            shape = tuple(self.integer(axis) for axis in axes)
            self.arrays[name] = ir.Array(name, dtypes[name], shape, local=False)

    def refusal(self, node: ast.AST, construct: str, hint: str = "") -> Unsupported:
        return Unsupported(self.kernel.numpy_source, getattr(node, "lineno", 1), construct, hint)

    def emit(self, stmt: ir.Stmt) -> None:
        self.out.append(stmt)

    # ---- what an expression is needed for

    def expr(self, node: ast.expr) -> Operand:
        """A scalar; NumPy's typing errors become refusals of the whole expression."""
        try:
            return self.scalar(node)
        except Mismatch as error:
            raise self.refusal(node, f"{error} in '{text(node)}'") from None

    def integer(self, node: ast.expr) -> ir.Expr:
        """An int64 for an index, a bound or an extent."""
        value = self.expr(node)
        if not ir.is_integer(value.dtype):
            raise self.refusal(node, f"'{text(node)}' ({value.dtype}) where an integer is needed")
        return promotion.convert(value, "int64")

    def condition(self, node: ast.expr) -> ir.Expr:
        """A truth value; ``and``, ``or`` and ``not`` of anything."""
        match node:
            case ast.BoolOp():
                operands = tuple(self.condition(value) for value in node.values)
                return ir.Logical("and" if isinstance(node.op, ast.And) else "or", operands)
            case ast.UnaryOp(op=ast.Not()):
                return ir.Unary("not", self.condition(node.operand), "bool")
            case _:
                return promotion.truth(self.expr(node))

    # ---- elements

    def element(self, node: ast.Subscript) -> tuple[str, tuple[ir.Expr, ...]]:
        """Array and index of ``a[i, j]``."""
        if not isinstance(node.value, ast.Name) or node.value.id not in self.arrays:
            raise self.refusal(node, f"'{text(node)}'", "index an array argument by one integer per axis")
        array = self.arrays[node.value.id]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(array.shape) or any(isinstance(p, (ast.Slice, ast.Starred)) for p in parts):
            raise self.refusal(
                node, f"'{text(node)}'", f"'{array.name}' takes {len(array.shape)} integer indices"
            )
        index = (self.position(part, extent) for part, extent in zip(parts, array.shape, strict=True))
        return array.name, tuple(index)

    def position(self, node: ast.expr, extent: ir.Expr) -> ir.Expr:
        """An index along an axis of that extent; a literal below zero counts from the end."""
        index = self.integer(node)
        if isinstance(index, ir.Const) and index.value < 0:  # type: ignore[operator]
            return promotion.binary("+", Operand(extent, True), Operand(index, True)).expr
        return index

    def load(self, array: str, index: tuple[ir.Expr, ...]) -> Operand:
        return Operand(ir.Load(array, index, ir.computes_in(self.arrays[array].dtype)))

    # ---- scalars

    def scalar(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return self.name(node)
            case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.load(*self.element(node))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.scalar(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return Operand(self.condition(node), weak=True)
            case ast.UnaryOp():
                return promotion.unary(_UNARY[type(node.op)], self.scalar(node.operand))
            case ast.BinOp() if type(node.op) in _BINARY:
                return promotion.binary(
                    _BINARY[type(node.op)], self.scalar(node.left), self.scalar(node.right)
                )
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return self.logical(node)
            case ast.IfExp():
                then, orelse = self.scalar(node.body), self.scalar(node.orelse)
                return promotion.select(self.condition(node.test), then, orelse)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def constant(self, node: ast.Constant) -> Operand:
        value = node.value
        if isinstance(value, (bool, int, float, complex)) and abs(value) != float("inf"):
            return promotion.python(value)
        raise self.refusal(node, f"the constant '{text(node)}'")

    def name(self, node: ast.Name) -> Operand:
        name = node.id
        if name in self.loops:
            return Operand(ir.Name(name, "int64"), weak=True)
        if name in self.scalars:
            return self.scalars[name]
        if name in self.assigned:
            dtype, weak = self.locals[name]
            return Operand(ir.Name(name, dtype), weak)
        if name in self.finished:
            raise self.refusal(node, f"'{name}' after its loop", "keep the value in a variable of its own")
        if name in self.arrays:
            raise self.refusal(node, f"array '{name}' as a whole", "write the loop over its elements")
        raise self.refusal(node, f"'{name}', which has no value here,")

    def attribute(self, node: ast.expr) -> Operand:
        """``a.shape[k]``, ``a.size``, ``a.ndim``, ``np.pi``."""
        match node:
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in CONSTANTS:
                return promotion.python(CONSTANTS[name])
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name)), slice=axis) if (
                name in self.arrays
            ):
                shape, which = self.arrays[name].shape, self.integer(axis)
                rank = len(shape)
                if (
                    isinstance(which, ir.Const)
                    and isinstance(which.value, int)
                    and -rank <= which.value < rank
                ):
                    return Operand(shape[which.value], weak=True)
            case ast.Attribute(value=ast.Name(id=name), attr="ndim") if name in self.arrays:
                return promotion.python(len(self.arrays[name].shape))
            case ast.Attribute(value=ast.Name(id=name), attr="size") if name in self.arrays:
                return self.size(self.arrays[name].shape)
        raise self.refusal(node, f"'{text(node)}'")

    def size(self, shape: tuple[ir.Expr, ...]) -> Operand:
        total = promotion.python(1)
        for k, extent in enumerate(shape):
            total = promotion.binary("*", total, Operand(extent, True)) if k else Operand(extent, True)
        return total

    def comparison(self, node: ast.Compare) -> Operand:
        if any(type(op) not in _COMPARE for op in node.ops):
            raise self.refusal(node, f"'{text(node)}'")
        terms = [self.scalar(term) for term in (node.left, *node.comparators)]
        pairs = zip(node.ops, terms[:-1], terms[1:], strict=True)
        parts = tuple(promotion.compare(_COMPARE[type(op)], left, right) for op, left, right in pairs)
        if len(parts) == 1:
            return parts[0]
        logical = ir.Logical("and", tuple(part.expr for part in parts))
        return Operand(logical, all(part.weak for part in parts))

    def logical(self, node: ast.BoolOp) -> Operand:
        """``and`` and ``or`` as a value: of truth values only, for Python gives one of the operands."""
        operands = [self.scalar(value) for value in node.values]
        if any(operand.dtype != "bool" for operand in operands):
            raise self.refusal(node, f"'{text(node)}' as a value", "compare the operands with 0")
        op = "and" if isinstance(node.op, ast.And) else "or"
        logical = ir.Logical(op, tuple(operand.expr for operand in operands))
        return Operand(logical, all(operand.weak for operand in operands))

    # ---- calls

    def call(self, node: ast.Call) -> Operand:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if (
                name in self.arrays
            ):
                return Operand(self.arrays[name].shape[0], weak=True)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                result = self.invoke(node, name)
                if result is None:
                    result = functions.builtin(name, self.arguments(node))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), keywords=[]):
                result = self.numpy_call(node, name)
            case _:
                result = None
        if result is None:
            raise self.refusal(node, f"'{text(node)}'")
        return result

    def arguments(self, node: ast.Call) -> tuple[Operand, ...]:
        return tuple(self.scalar(arg) for arg in node.args)

    def numpy_call(self, node: ast.Call, name: str) -> Operand | None:
        if name in functions.DTYPES and len(node.args) == 1:
            return promotion.cast(self.scalar(node.args[0]), functions.DTYPES[name])
        if name == "where" and len(node.args) == 3:
            test, then, orelse = node.args
            values = self.scalar(then), self.scalar(orelse)
            return promotion.select(self.condition(test), *values, elementwise=True)
        if not functions.known(name):
            return None
        return functions.apply(name, self.arguments(node))

    def invoke(self, node: ast.Call, name: str) -> Operand | None:
        """A call of one of the reference's own functions, None when there is none of that name."""
        return None

    def element_type(self, node: ast.expr) -> str:
        """The dtype that ``a.dtype``, ``np.float64``, ``float`` or ``"float64"`` names."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="dtype") if name in self.arrays:
                return self.arrays[name].dtype
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in functions.DTYPES:
                return functions.DTYPES[name]
            case ast.Name(id=("int" | "float" | "bool" | "complex") as name):
                return {"int": "int64", "float": "float64", "complex": "complex128"}.get(name, "bool")
            case ast.Constant(value=str() as name) if name in functions.DTYPES:
                return functions.DTYPES[name]
            case _:
                raise self.refusal(node, f"dtype '{text(node)}'", "write dtype=a.dtype or np.float64")


def text(node: ast.AST) -> str:
    """The construct as one short line."""
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 60 else f"{line[:57]}..."
