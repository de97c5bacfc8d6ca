"""Assignments of a reference: to scalars, elements, parts of arrays and names."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

import numpy as np

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import functions, promotion
from hpcagent_bench.translators.frontend.arrays import Array, Index, Value
from hpcagent_bench.translators.frontend.binding import Binding
from hpcagent_bench.translators.frontend.folding import PROBE
from hpcagent_bench.translators.frontend.promotion import Operand
from hpcagent_bench.translators.frontend.reading import text
from hpcagent_bench.translators.frontend.subscripts import subscript


@dataclass
class Assignments(Binding):
    """Reads what changes scalars and arrays."""

    guarded: list[set[str]] = field(default_factory=lambda: [set()])  # positive by the test of a loop around

    def assign(self, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
        if len(targets) > 1:
            if not isinstance(value, (ast.Constant, ast.Name)):
                raise self.refusal(node, f"'{text(node)}'", "one target a statement")
            for target in reversed(targets):
                self.assign([target], value, node)
            return
        match targets[0], value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                self.unpack(names, [self.value(part) for part in values], node)
            case ast.Tuple(elts=names), ast.Attribute(value=of, attr="shape"):
                axes = self.array(of).axes
                if len(axes) != len(names):
                    raise self.refusal(node, f"'{text(node)}'")
                self.unpack(names, [self.extent(axis) for axis in axes], node)
            case ast.Tuple(elts=names), ast.Call():
                self.unpack(names, self.several(value, len(names)), node)
            case (ast.Name() | ast.Subscript()) as target, _:
                self.naming = self.wanted(target, value)
                result = self.value(value)
                self.naming = ""
                self.put_value(target, result, value, node)
            case target, _:
                raise self.refusal(node, f"assignment to '{text(target)}'")

    def wanted(self, target: ast.expr, value: ast.expr) -> str:
        """The name that a listed array or one reduction may be computed under: that of the target."""
        if not isinstance(target, ast.Name) or target.id in self.bound:
            return ""
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        return target.id if _is_made(value) and target.id not in read else ""

    def several(self, node: ast.expr, count: int) -> list[Value]:
        """The values of a call that returns a tuple."""
        raise self.refusal(node, f"'{text(node)}' with {count} results")

    def unpack(self, targets: list[ast.expr], values: list[Value], node: ast.stmt) -> None:
        """``a, b = b, a``: every value is computed before the first is stored."""
        written: set[str] = set()
        kept: list[Value] = []
        for target, value in zip(targets, values, strict=True):
            base = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(value, Operand) and ir.reads(value.expr) & written:
                value = self.keep(f"{ast.unparse(base)}_new", value)
            if isinstance(value, Array) and isinstance(target, ast.Subscript) and written:
                value = self.materialised(value, f"{ast.unparse(base)}_new")
            kept.append(value)
            written.add(ast.unparse(base))
            if isinstance(base, ast.Name) and base.id in self.bound and (place := self.bound[base.id].place):
                written.add(place.array)
        for target, value in zip(targets, kept, strict=True):
            self.put_value(target, value, target, node)

    def put_value(self, target: ast.expr, value: Value, source: ast.expr, node: ast.stmt) -> None:
        """``target = value``: an element, part of an array, or a name."""
        if isinstance(target, ast.Subscript):
            self.put_into(self.target(target, node), value, node)
            return
        if not isinstance(target, ast.Name):
            raise self.refusal(node, f"assignment to '{text(target)}'")
        name = target.id
        argument = name in self.arrays and not self.arrays[name].local
        if name in self.scalars or name in self.loops or argument or name == self.kernel.function:
            raise self.refusal(node, f"assignment to '{name}', an argument, an index or an array,")
        if isinstance(value, Array):
            self.bind(name, value, source, node)
            return
        if name in self.bound or name in self.unclear:
            raise self.refusal(node, f"'{name}' as a scalar and an array", "rename one")
        self.usable(name, node)
        self.assign_scalar(name, value)

    def assign_scalar(self, name: str, value: Operand) -> None:
        self.guarded[-1].discard(name)
        if value.expr != ir.Name(name, value.dtype):
            self.define(name, value)
        _, weak = self.locals[name]
        if weak and self.stores.get(name) == 1 and ir.is_integer(value.dtype) and self.steady(value.expr):
            self.known.definitions[name] = promotion.convert(value, "int64")

    def steady(self, expr: ir.Expr) -> bool:
        """Whether a value stays what it is while the loops around go on with one iteration."""
        for part in ir.walk(expr):
            if isinstance(part, ir.Load) and not self.constant_argument(part.array):
                return False
            if (
                isinstance(part, ir.Name)
                and part.name in self.locals
                and part.name not in self.known.definitions
            ):
                return False
        return True

    def target(self, node: ast.Subscript, stmt: ast.AST) -> Array:
        """The place that an assignment writes to."""
        base = self.array(node.value)
        return self.writable(subscript(base, self.parts(node), self.known), base, stmt, text(node))

    def writable(self, target: Array, base: Array, node: ast.AST, name: str) -> Array:
        if target.place is None or base.copied:
            raise self.refusal(node, f"a store into '{name}', which is no array in memory,")
        array = target.place.array
        if not self.arrays[array].local and array not in self.kernel.outputs:
            raise self.refusal(node, f"a store into '{array}', which is no output,")
        return target

    def put_into(self, target: Array, value: Value, node: ast.AST) -> None:
        """``target[...] = value``."""
        if not target.axes:
            if isinstance(value, Array):
                value = self.settled(subscript(value, [promotion.python(0)] * value.rank, self.known))
            assert isinstance(value, Operand)
            self.put(target, (), value)
            return
        self.store(target, value)

    def update(self, node: ast.AugAssign) -> None:
        """``target op= value``: in place for arrays."""
        match node.target:
            case ast.Name(id=name) as target if not isinstance(self.read(_as_load(target)), Array):
                value = ast.copy_location(ast.BinOp(_as_load(target), node.op, node.value), node)
                self.assign([target], value, node)
                return
            case ast.Name(id=name):
                base = self.array(_as_load(node.target))
                target_array = self.writable(base, base, node, name)
            case ast.Subscript():
                target_array = self.target(node.target, node)
            case _:
                raise self.refusal(node, f"assignment to '{text(node.target)}'")
        current = self.settled(target_array)
        result = self.operation(node.op, current, self.value(node.value), node)
        self.in_place(target_array, result, node)

    def in_place(self, target: Array, result: Value, node: ast.AST) -> None:
        assert target.place is not None
        dtype = self.arrays[target.place.array].dtype
        plain = ir.computes_in(dtype) == dtype and dtype != "int4"
        if target.axes and plain and not np.can_cast(result.dtype, dtype, "same_kind"):
            raise self.refusal(node, f"a result of {result.dtype} in place of {dtype}")
        self.put_into(target, result, node)

    # ---- calls for what they do

    def perform(self, node: ast.Call) -> None:
        """A call whose result nobody takes."""
        out = next((word.value for word in node.keywords if word.arg == "out"), None)
        match node.func:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="np"), attr=ufunc), attr="at"):
                self.update_at(node, ufunc)
            case ast.Attribute(value=ast.Name(id="np"), attr="copyto") if len(node.args) == 2:
                target = self.array(node.args[0])
                self.put_into(
                    self.writable(target, target, node, text(node.args[0])), self.value(node.args[1]), node
                )
            case ast.Attribute(value=ast.Name(id="np")) if out is not None:
                rest = [word for word in node.keywords if word.arg != "out"]
                value = self.value(ast.copy_location(ast.Call(node.func, node.args, rest), node))
                target = self.array(out)
                self.in_place(self.writable(target, target, node, text(out)), value, node)
            case ast.Attribute(value=of, attr="fill") if len(node.args) == 1:
                target = self.array(of)
                self.put_into(self.writable(target, target, node, text(of)), self.expr(node.args[0]), node)
            case _:
                self.procedure(node)

    def procedure(self, node: ast.Call) -> None:
        """A function of the reference that works by what it writes."""
        raise self.refusal(node, f"'{text(node)}'")

    def update_at(self, node: ast.Call, ufunc: str) -> None:
        """``np.add.at(a, index, value)``: one update after the other, repeated places included."""
        if len(node.args) != 3 or not functions.known(ufunc):
            raise self.refusal(node, f"'{text(node)}'")
        of, place, given = node.args
        reference = ast.copy_location(ast.Subscript(of, place, ast.Store()), node)
        target, value = self.target(reference, node), self.value(given)
        assert target.place is not None
        if isinstance(value, Array) and target.place.array in _loaded(value):
            value = self.materialised(value, f"{target.place.array}_new")
        value = self.fitted(target, value)

        def write(index: Index) -> None:
            element = value.element(index, self) if isinstance(value, Array) else value
            result = functions.apply(ufunc, (target.element(index, self), element))
            assert result is not None
            self.put(target, index, result)

        self.over(target.axes, write)


def _loaded(value: Array) -> frozenset[str]:
    index = tuple(ir.Name(f"axis {k}", "int64") for k in range(value.rank))
    return ir.reads(value.element(index, PROBE).expr)


def _is_made(node: ast.expr) -> bool:
    """Whether an expression is one reduction, or an array of listed values."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="array"), args=[listed]):
            return isinstance(listed, (ast.List, ast.Tuple))
        case ast.Call(
            func=ast.Attribute(attr="sum" | "prod" | "min" | "max" | "dot" | "any" | "all" | "vdot")
        ):
            return True
        case ast.BinOp(op=ast.MatMult()):
            return True
        case _:
            return False


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name():
            return ast.copy_location(ast.Name(target.id, ast.Load()), target)
        case _:
            return target
