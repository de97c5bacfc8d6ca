"""Statements of a reference: loops, branches, assignments to scalars, elements and arrays."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hpcagent_bench.translators import functions, ir, promotion
from hpcagent_bench.translators.arrays import Array, Index, Value
from hpcagent_bench.translators.binding import Binding
from hpcagent_bench.translators.folding import PROBE
from hpcagent_bench.translators.knowledge import Range
from hpcagent_bench.translators.promotion import Mismatch, Operand
from hpcagent_bench.translators.reading import text
from hpcagent_bench.translators.steps import Signs, Values
from hpcagent_bench.translators.subscripts import subscript
from hpcagent_bench.translators.sums import ONE, ZERO

_MOST_PASSES = 12


@dataclass
class StatementReader(Binding):
    """Reads the statements of one function; ``signs`` knows the locals' signs from the pass before."""

    signs: Signs | None = None
    signed: bool = False  # whether the direction of some loop depends on signs
    guarded: list[set[str]] = field(default_factory=lambda: [set()])  # positive by the test of a loop around

    def settle(self, nodes: list[ast.stmt], arguments: Sequence[Values] = ({},)) -> tuple[ir.Stmt, ...]:
        """Read a body until the dtypes of its locals stand; the last pass knows them, and their signs."""
        taken = frozenset(self.taken)
        stores, indices = _counted(nodes)
        for _ in range(_MOST_PASSES):
            before, last = dict(self.locals), self.signs is not None
            self.restart(taken)
            self.stores, self.indices = Counter(stores), set(indices)
            self.opening(nodes)
            opening = tuple(self.out)
            body = self.block(nodes)
            if self.locals == before and (last or not self.signed):
                return (*self.ahead, *opening, *body)
            self.signs = Signs(arguments, self.given) if self.locals == before else None
        raise self.refusal(nodes[0], "a mix of dtypes that does not come to rest")

    def restart(self, taken: frozenset[str]) -> None:
        """Forget what one pass saw, except the dtypes it found."""
        self.arrays = {name: array for name, array in self.arrays.items() if not array.local}
        for seen in (self.assigned, self.finished, self.given, self.bound, self.unclear, self.own):
            seen.clear()
        self.out, self.ahead = [], []
        self.known.ranges, self.known.definitions = [], {}
        self.taken = set(taken)
        self.made.clear()

    def opening(self, nodes: list[ast.stmt]) -> None:
        """Statements before those of the text."""

    def block(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        outer, self.out = self.out, []
        for node in nodes:
            self.line = node.lineno
            try:
                self.statement(node)
            except Mismatch as error:
                raise self.refusal(node, f"{error} in '{text(node)}'") from None
        inner, self.out = self.out, outer
        return tuple(inner)

    def nested(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        self.depth += 1
        known = dict(self.known.definitions)
        body = self.block(nodes)
        self.known.definitions = known
        self.depth -= 1
        return body

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.For():
                self.loop(node)
            case ast.While():
                self.repeat(node)
            case ast.If():
                self.choose(node)
            case ast.Assign(targets=targets):
                self.assign(targets, node.value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign([target], value, node)
            case ast.AugAssign():
                self.update(node)
            case ast.Break() | ast.Continue():
                self.emit(ir.Jump(type(node).__name__.lower(), node.lineno))
            case ast.Return():
                self.end(node)
            case ast.Expr(value=ast.Call() as call):
                self.perform(call)
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def end(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            raise self.refusal(node, f"'{text(node)}'", "write results into the output arrays")
        self.emit(ir.Return(None, node.lineno))

    # ---- loops and branches

    def choose(self, node: ast.If) -> None:
        test = self.condition(node.test)
        before = dict(self.bound)
        body = self.nested(node.body)
        then, self.bound = self.bound, before
        orelse = self.nested(node.orelse)
        self.merge(then, self.bound)
        self.emit(ir.If(test, body, orelse, node.lineno))

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refusal(node, "'for ... else'")
        if not isinstance(node.target, ast.Name):
            raise self.refusal(node, f"loop target '{text(node.target)}'")
        var = node.target.id
        if var in self.loops or var in self.scalars or var in self.bound or var in self.locals:
            raise self.refusal(
                node, f"loop index '{var}', which is in use", "give the index a name of its own"
            )
        self.usable(var, node, again=True)
        start, stop, step, descending = self.range(node.iter)
        self.loops.append(var)
        self.finished.discard(var)
        steady = self.steady(start) and self.steady(stop)
        self.known.ranges.append(
            Range(var, start, stop, step, descending) if steady else Range(var, None, None)
        )
        body = self.body(node, frozenset(), var)
        self.known.ranges.pop()
        self.loops.pop()
        self.finished.add(var)
        self.emit(ir.For(var, start, stop, step, body, node.lineno, descending))

    def range(self, node: ast.expr) -> tuple[ir.Expr, ir.Expr, ir.Expr, bool]:
        """Start, stop and step of ``range(...)`` and whether it goes down."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if 1 <= len(args) <= 3:
                pass
            case _:
                raise self.refusal(node, f"a loop over '{text(node)}'", "loop over range(...)")
        bounds = [self.integer(arg) for arg in args]
        if len(bounds) == 1:
            return ZERO, bounds[0], ONE, False
        if len(bounds) == 2:
            return bounds[0], bounds[1], ONE, False
        return bounds[0], bounds[1], bounds[2], self.descends(args[2], bounds[2])

    def descends(self, node: ast.expr, step: ir.Expr) -> bool:
        if isinstance(step, ir.Const) and isinstance(step.value, int) and step.value != 0:
            return step.value < 0
        self.signed = True
        if self.signs is None:  # not known before the last pass
            return False
        sign = self.signs.of(step, frozenset(self.guarded[-1]))
        if sign == 0:
            raise self.refusal(
                node, f"step '{text(node)}', whose sign is not certain,", "use a step of one sign, never zero"
            )
        return sign < 0

    def repeat(self, node: ast.While) -> None:
        if node.orelse:
            raise self.refusal(node, "'while ... else'")
        outer, self.out = self.out, []
        self.depth += 1
        test = self.condition(node.test)
        self.depth -= 1
        before, self.out = self.out, outer
        body = self.body(node, _positive(test))
        if before:  # what the test needs is computed anew each time round
            leave = ir.If(ir.Unary("not", test, "bool"), (ir.Jump("break", node.lineno),), (), node.lineno)
            body, test = (*before, leave, *body), ir.Const(True, "bool")
        self.emit(ir.While(test, body, node.lineno))

    def body(
        self, node: ast.For | ast.While, positive: frozenset[str], var: str | None = None
    ) -> tuple[ir.Stmt, ...]:
        """The body of a loop whose test says that some names are positive when an iteration starts."""
        stored = self.guarded[-1] and {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self.guarded.append((self.guarded[-1] - stored) | positive)
        with self.repeated(node, var):
            body = self.nested(node.body)
        self.guarded.pop()
        return body

    # ---- assignments

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


def _counted(nodes: list[ast.stmt]) -> tuple[Counter[str], set[str]]:
    """How often names are assigned, and which are only ever indices of loops."""
    every = [node for top in nodes for node in ast.walk(top)]
    stores = Counter(n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    loops = Counter(n.target.id for n in every if isinstance(n, ast.For) and isinstance(n.target, ast.Name))
    return stores, {name for name, count in loops.items() if count == stores[name]}


def _loaded(value: Array) -> frozenset[str]:
    index = tuple(ir.Name(f"axis {k}", "int64") for k in range(value.rank))
    return ir.reads(value.element(index, PROBE).expr)


def _positive(test: ir.Expr) -> frozenset[str]:
    """Names that a test says are at least one."""
    match test:
        case ir.Compare(op=">", left=ir.Name(name=name), right=ir.Const(value=int() as least)) if least >= 0:
            return frozenset({name})
        case ir.Compare(op=">=", left=ir.Name(name=name), right=ir.Const(value=int() as least)) if least >= 1:
            return frozenset({name})
        case ir.Logical(op="and"):
            return frozenset().union(*(_positive(operand) for operand in test.operands))
        case _:
            return frozenset()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


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
