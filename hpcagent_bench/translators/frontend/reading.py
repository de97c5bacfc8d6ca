"""Expressions of a reference: names, elements, arithmetic and functions on values and whole arrays."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench.corpus import expressions
from hpcagent_bench.errors import UserError
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import calls, functions, promotion
from hpcagent_bench.translators.frontend.arrays import Array, Axis, Value, mapped, stored, transposed
from hpcagent_bench.translators.frontend.lowering import Lowering
from hpcagent_bench.translators.frontend.products import matmul, with_factor, with_start
from hpcagent_bench.translators.frontend.promotion import Mismatch, Operand
from hpcagent_bench.translators.frontend.subscripts import Part, Slice, subscript
from hpcagent_bench.translators.frontend.sums import ZERO, known

_BINARY: dict[type[ast.operator], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
}
_COMPARE: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
CONSTANTS = {
    **{"pi": 3.141592653589793, "e": 2.718281828459045, "euler_gamma": 0.5772156649015329},
    **{"inf": float("inf"), "nan": float("nan")},
}


class Unsupported(UserError):
    """A construct of a reference the translators do not cover: ``file``, ``line`` and ``construct``."""

    def __init__(self, file: Path, line: int, construct: str, hint: str = "") -> None:
        super().__init__(f"{file}:{line}: {construct} is not covered by the translators", hint)
        self.file = file
        self.line = line
        self.construct = construct


@dataclass
class ExpressionReader(Lowering):
    """Reads expressions under what is known at a point of the text: arrays, scalars, locals, open loops.

    ``bound`` says which array value each name stands for. An expression may write statements that have to run
    before it.
    """

    bound: dict[str, Array] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)  # names of arrays that depend on the path taken
    finished: set[str] = field(default_factory=set)  # indices of loops above, dead by the corpus rules

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

    # ---- what an expression is needed for

    def value(self, node: ast.expr) -> Value:
        """A scalar or an array; what NumPy refuses becomes a refusal of the whole expression."""
        try:
            return self.read(node)
        except Mismatch as error:
            raise self.refusal(node, f"{error} in '{text(node)}'") from None

    def expr(self, node: ast.expr) -> Operand:
        """A scalar."""
        value = self.value(node)
        if isinstance(value, Array):
            raise self.refusal(node, f"array '{text(node)}' where a single value is needed")
        return value

    def array(self, node: ast.expr) -> Array:
        value = self.value(node)
        if isinstance(value, Operand):
            raise self.refusal(node, f"'{text(node)}' where an array is needed")
        return value

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
                return self.chain("and" if isinstance(node.op, ast.And) else "or", node.values)
            case ast.UnaryOp(op=ast.Not()):
                return ir.Unary("not", self.condition(node.operand), "bool")
            case _:
                return promotion.truth(self.expr(node))

    def chain(self, op: str, nodes: list[ast.expr]) -> ir.Expr:
        """``a and b and c`` as a condition: what a later part needs first is done only if it is needed."""
        parts = [self.condition(nodes[0])]
        for node in nodes[1:]:
            outer, self.out = self.out, []
            self.depth += 1
            part = self.condition(node)
            self.depth -= 1
            inner, self.out = self.out, outer
            if not inner:
                parts.append(part)
                continue
            so_far = self.keep("holds", Operand(ir.Logical(op, tuple(parts)) if len(parts) > 1 else parts[0]))
            assert isinstance(so_far.expr, ir.Name)
            test = so_far.expr if op == "and" else ir.Unary("not", so_far.expr, "bool")
            inner.append(ir.Assign(so_far.expr.name, part, self.line))
            self.emit(ir.If(test, tuple(inner), (), self.line))
            parts = [so_far.expr]
        return ir.Logical(op, tuple(parts)) if len(parts) > 1 else parts[0]

    def branchwise(self, node: ast.expr) -> Value:
        """One of two values of a conditional expression."""
        before = len(self.out)
        result = self.read(node)
        if len(self.out) > before:
            raise self.refusal(node, f"'{text(node)}' under a condition", "write an if statement")
        return result

    # ---- expressions

    def read(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return self.name(node)
            case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.settled(subscript(self.array(node.value), self.parts(node), self.known))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return Operand(self.condition(node), weak=True)
            case ast.UnaryOp():
                op = _UNARY[type(node.op)]
                return mapped(lambda x: promotion.unary(op, x), self.read(node.operand))
            case ast.BinOp():
                return self.operation(node.op, self.read(node.left), self.read(node.right), node)
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return self.logical(node)
            case ast.IfExp():
                return self.conditional(node)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def operation(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        """``left op right``."""
        if isinstance(op, ast.MatMult):
            if isinstance(left, Operand) or isinstance(right, Operand):
                raise Mismatch("'@' of a single value")
            return self.settled(matmul(left, right))
        if type(op) not in _BINARY:
            raise self.refusal(node, f"'{text(node)}'")
        sign = _BINARY[type(op)]
        result = mapped(lambda x, y: promotion.binary(sign, x, y), left, right)
        return with_factor(result, left, right) if sign == "*" else with_start(result, sign, left, right)

    def settled(self, value: Array) -> Value:
        """An array of no axes as the one value it holds."""
        return value if value.axes else value.element((), self)

    def constant(self, node: ast.Constant) -> Operand:
        value = node.value
        if isinstance(value, (bool, int, float, complex)) and abs(value) != float("inf"):
            return promotion.python(value)
        raise self.refusal(node, f"the constant '{text(node)}'")

    def name(self, node: ast.Name) -> Value:
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
        if name in self.unclear:
            raise self.refusal(node, f"'{name}', {self.unclear[name]},")
        if name in self.bound:
            return self.bound[name]
        if name in self.arrays and not self.arrays[name].local:
            return stored(self.arrays[name])
        raise self.refusal(node, f"'{name}', which has no value here,")

    def parts(self, node: ast.Subscript) -> list[Part]:
        """What stands between the brackets, the ellipsis written out."""
        array = self.array(node.value)
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts: list[Part] = []
        gap = None
        for part in nodes:
            match part:
                case ast.Constant(value=value) if value is Ellipsis:
                    gap = len(parts)
                case ast.Constant(value=None) | ast.Attribute(value=ast.Name(id="np"), attr="newaxis"):
                    parts.append(None)
                case ast.Slice():
                    parts.append(self.slice(part))
                case _:
                    index = self.value(part)
                    if not isinstance(index, Array) and not ir.is_integer(index.dtype):
                        raise self.refusal(part, f"'{text(part)}' ({index.dtype}) where an integer is needed")
                    parts.append(index)
        if gap is not None:
            masks = [part.rank - 1 for part in parts if isinstance(part, Array) and part.dtype == "bool"]
            used = len([part for part in parts if part is not None]) + sum(masks)
            parts[gap:gap] = [Slice(None, None)] * (array.rank - used)
        return parts

    def slice(self, node: ast.Slice) -> Slice:
        start, stop = (None if end is None else self.bound_of(end) for end in (node.lower, node.upper))
        step = 1 if node.step is None else self.integer(node.step)
        if isinstance(step, ir.Const):
            step = step.value  # type: ignore[assignment]
        if not isinstance(step, int) or step == 0:
            raise self.refusal(node, f"step '{text(node.step or node)}' of a slice", "write a number")
        return Slice(start, stop, step)

    def bound_of(self, node: ast.expr) -> ir.Expr | None:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        return self.integer(node)

    def attribute(self, node: ast.expr) -> Value:
        """``a.shape[k]``, ``a.size``, ``a.ndim``, ``a.T``, ``a.real``, ``np.pi``."""
        match node:
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in CONSTANTS:
                return promotion.python(CONSTANTS[name])
            case ast.Subscript(value=ast.Attribute(value=of), slice=axis):
                axes, which = self.array(of).axes, self.integer(axis)
                at = known(which)
                if at is not None and -len(axes) <= at < len(axes):
                    return self.extent(axes[at])
            case ast.Attribute(
                value=of, attr="ndim" | "size" | "T" | "real" | "imag" | "shape" as attr
            ) if not (isinstance(of, ast.Name) and of.id == "np"):
                return self.property(node, self.value(of), attr)
        raise self.refusal(node, f"'{text(node)}'")

    def property(self, node: ast.expr, value: Value, attr: str) -> Value:
        if attr in ("real", "imag"):
            return mapped(lambda x: functions.apply(attr, (x,)) or x, value)
        if isinstance(value, Array):
            match attr:
                case "ndim":
                    return promotion.python(value.rank)
                case "size":
                    return self.size(value)
                case "T":
                    return transposed(value, tuple(reversed(range(value.rank))))
        raise self.refusal(node, f"'{text(node)}'")

    def extent(self, axis: Axis) -> Operand:
        """How many elements there are along an axis, as Python counts them."""
        if self.known.nonnegative(axis.extent):
            return Operand(axis.extent, weak=True)
        return Operand(ir.Call("max", (axis.extent, ZERO), "int64"), weak=True)

    def size(self, array: Array) -> Operand:
        """How many elements there are."""
        total = promotion.python(1)
        for k, axis in enumerate(array.axes):
            extent = self.extent(axis)
            total = promotion.binary("*", total, extent) if k else extent
        return total

    def comparison(self, node: ast.Compare) -> Value:
        if any(type(op) not in _COMPARE for op in node.ops):
            raise self.refusal(node, f"'{text(node)}'")
        terms = [self.read(term) for term in (node.left, *node.comparators)]
        if len(terms) == 2:
            op = _COMPARE[type(node.ops[0])]
            return mapped(lambda x, y: promotion.compare(op, x, y), *terms)
        scalars = [term for term in terms if isinstance(term, Operand)]
        if len(scalars) < len(terms):
            raise self.refusal(node, f"'{text(node)}' of arrays", "compare two at a time")
        pairs = zip(node.ops, scalars[:-1], scalars[1:], strict=True)
        parts = tuple(promotion.compare(_COMPARE[type(op)], left, right) for op, left, right in pairs)
        logical = ir.Logical("and", tuple(part.expr for part in parts))
        return Operand(logical, all(part.weak for part in parts))

    def logical(self, node: ast.BoolOp) -> Operand:
        """``and`` and ``or`` as a value: of truth values only, for Python gives one of the operands."""
        operands = [self.read(node.values[0]), *(self.branchwise(value) for value in node.values[1:])]
        single = [operand for operand in operands if isinstance(operand, Operand) and operand.dtype == "bool"]
        if len(single) < len(operands):
            raise self.refusal(node, f"'{text(node)}' as a value", "compare the operands with 0")
        op = "and" if isinstance(node.op, ast.And) else "or"
        logical = ir.Logical(op, tuple(operand.expr for operand in single))
        return Operand(logical, all(operand.weak for operand in single))

    def conditional(self, node: ast.IfExp) -> Operand:
        test = self.condition(node.test)
        then, orelse = self.branchwise(node.body), self.branchwise(node.orelse)
        if isinstance(then, Array) or isinstance(orelse, Array):
            raise self.refusal(node, f"'{text(node)}' of arrays", "write an if statement or np.where")
        return promotion.select(test, then, orelse)

    def call(self, node: ast.Call) -> Value:
        return calls.call(self, node)

    def invoke(self, node: ast.Call, name: str) -> Value | None:
        """A call of one of the reference's own functions, None when there is none of that name."""
        return None

    def element_type(self, node: ast.expr) -> str:
        """The dtype that ``a.dtype``, ``np.float64``, ``float`` or ``"float64"`` names."""
        match node:
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in functions.DTYPES:
                return functions.DTYPES[name]
            case ast.Attribute(value=of, attr="dtype"):
                value = self.value(of)
                if isinstance(value, Array) and value.place is not None:
                    return self.arrays[value.place.array].dtype
                return functions.strong(value).dtype if isinstance(value, Operand) else value.dtype
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
