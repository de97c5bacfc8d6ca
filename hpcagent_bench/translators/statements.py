"""Statements of a reference: loops, branches, assignments to scalars and elements, temporaries."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from hpcagent_bench.toolchain.abi import c_name
from hpcagent_bench.translators import ir, promotion
from hpcagent_bench.translators.promotion import Mismatch, Operand
from hpcagent_bench.translators.reading import ExpressionReader, text
from hpcagent_bench.translators.steps import Signs, Values

_ONE = ir.Const(1, "int64")
_ZERO = ir.Const(0, "int64")
_ALLOCATIONS = ("empty", "zeros", "empty_like", "zeros_like")
_MOST_PASSES = 12


@dataclass
class StatementReader(ExpressionReader):
    """Reads the statements of one function; ``signs`` knows the locals' signs from the pass before."""

    signs: Signs | None = None
    given: dict[str, list[ir.Expr]] = field(default_factory=dict)  # every value each local is assigned
    guarded: list[set[str]] = field(default_factory=lambda: [set()])  # positive by the test of a loop around
    taken: set[str] = field(default_factory=set)  # names in use anywhere in the function
    depth: int = 0  # enclosing loops and branches

    def settle(self, nodes: list[ast.stmt], arguments: Sequence[Values] = ({},)) -> tuple[ir.Stmt, ...]:
        """Read a body until the dtypes of its locals stand; the last pass knows them, and their signs."""
        taken = frozenset(self.taken)
        for _ in range(_MOST_PASSES):
            before, last = dict(self.locals), self.signs is not None
            self.restart(taken)
            self.opening(nodes)
            body = (*self.out, *self.block(nodes))
            if self.locals == before and last:
                return body
            self.signs = Signs(arguments, self.given) if self.locals == before else None
        raise self.refusal(nodes[0], "a mix of dtypes that does not come to rest")

    def restart(self, taken: frozenset[str]) -> None:
        """Forget what one pass saw, except the dtypes it found."""
        self.arrays = {name: array for name, array in self.arrays.items() if not array.local}
        self.assigned.clear()
        self.finished.clear()
        self.given.clear()
        self.out = []
        self.taken = set(taken)

    def opening(self, nodes: list[ast.stmt]) -> None:
        """Statements before those of the text."""

    def block(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        outer, self.out = self.out, []
        for node in nodes:
            try:
                self.statement(node)
            except Mismatch as error:
                raise self.refusal(node, f"{error} in '{text(node)}'") from None
        inner, self.out = self.out, outer
        return tuple(inner)

    def nested(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        self.depth += 1
        body = self.block(nodes)
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
                test = self.condition(node.test)
                body, orelse = self.nested(node.body), self.nested(node.orelse)
                self.emit(ir.If(test, body, orelse, node.lineno))
            case ast.Assign(targets=targets):
                self.assign(targets, node.value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign([target], value, node)
            case ast.AugAssign():
                value = ast.copy_location(ast.BinOp(_as_load(node.target), node.op, node.value), node)
                self.assign([node.target], value, node)
            case ast.Break() | ast.Continue():
                self.emit(ir.Jump(type(node).__name__.lower(), node.lineno))
            case ast.Return():
                self.end(node)
            case _:
                raise self.refusal(node, f"'{text(node)}'")

    def end(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            raise self.refusal(node, f"'{text(node)}'", "write results into the output arrays")
        self.emit(ir.Return(None, node.lineno))

    # ---- loops

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refusal(node, "'for ... else'")
        if not isinstance(node.target, ast.Name):
            raise self.refusal(node, f"loop target '{text(node.target)}'")
        var = node.target.id
        if var in self.loops or var in self.scalars or var in self.arrays or var in self.locals:
            raise self.refusal(
                node, f"loop index '{var}', which is in use", "give the index a name of its own"
            )
        self.usable(var, node, again=True)
        start, stop, step, descending = self.range(node.iter)
        self.loops.append(var)
        self.finished.discard(var)
        body = self.guarded_body(node, frozenset())
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
            return _ZERO, bounds[0], _ONE, False
        if len(bounds) == 2:
            return bounds[0], bounds[1], _ONE, False
        return bounds[0], bounds[1], bounds[2], self.descends(args[2], bounds[2])

    def descends(self, node: ast.expr, step: ir.Expr) -> bool:
        if isinstance(step, ir.Const) and isinstance(step.value, int) and step.value != 0:
            return step.value < 0
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
        test = self.condition(node.test)
        before, self.out = self.out, outer
        body = self.guarded_body(node, _positive(test))
        if before:  # what the test needs is computed anew each time round
            leave = ir.If(ir.Unary("not", test, "bool"), (ir.Jump("break", node.lineno),), (), node.lineno)
            body, test = (*before, leave, *body), ir.Const(True, "bool")
        self.emit(ir.While(test, body, node.lineno))

    def guarded_body(self, node: ast.For | ast.While, positive: frozenset[str]) -> tuple[ir.Stmt, ...]:
        """The body of a loop whose test says that some names are positive when an iteration starts."""
        changed = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.guarded.append((self.guarded[-1] - changed) | positive)
        body = self.nested(node.body)
        self.guarded.pop()
        return body

    # ---- assignments

    def assign(self, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
        if len(targets) > 1:
            raise self.refusal(node, f"'{text(node)}'", "one target a statement")
        match targets[0], value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                self.unpack(names, [self.expr(part) for part in values], node)
            case ast.Tuple(elts=names), ast.Attribute(value=ast.Name(id=array), attr="shape") if (
                array in self.arrays and len(names) == len(self.arrays[array].shape)
            ):
                self.unpack(names, [Operand(extent, True) for extent in self.arrays[array].shape], node)
            case ast.Name(id=name), ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=function)) if (
                function in _ALLOCATIONS
            ):
                self.allocation(name, value, node)
            case (ast.Name() | ast.Subscript()) as target, _:
                self.put(target, self.expr(value), node)
            case target, _:
                raise self.refusal(node, f"assignment to '{text(target)}'")

    def unpack(self, targets: list[ast.expr], values: list[Operand], node: ast.stmt) -> None:
        """``a, b = b, a``: every value is computed before the first is stored."""
        written: set[str] = set()
        kept = []
        for target, value in zip(targets, values, strict=True):
            base = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if ir.reads(value.expr) & written:
                value = self.keep(f"{ast.unparse(base)}_new", value, node)
            kept.append(value)
            written.add(ast.unparse(base))
        for target, value in zip(targets, kept, strict=True):
            self.put(target, value, node)

    def keep(self, wanted: str, value: Operand, node: ast.AST) -> Operand:
        """The value in a local of its own."""
        name = self.fresh(wanted)
        self.define(name, value, node)
        dtype, weak = self.locals[name]
        return Operand(ir.Name(name, dtype), weak)

    def put(self, target: ast.expr, value: Operand, node: ast.stmt) -> None:
        """Store one value in a local or an element."""
        if isinstance(target, ast.Subscript):
            array, index = self.element(target)
            if not self.arrays[array].local and array not in self.kernel.outputs:
                raise self.refusal(node, f"a store into '{array}', which is no output,")
            dtype = ir.computes_in(self.arrays[array].dtype)
            self.emit(ir.Store(array, index, promotion.convert(value, dtype), node.lineno))
            return
        if not isinstance(target, ast.Name):
            raise self.refusal(node, f"assignment to '{text(target)}'")
        name = target.id
        if name in self.scalars or name in self.loops or name in self.arrays:
            raise self.refusal(node, f"assignment to '{name}', an argument, an index or an array,")
        self.usable(name, node)
        self.define(name, value, node)

    def define(self, name: str, value: Operand, node: ast.AST) -> None:
        """A local takes a value; its dtype is what holds all values it is ever given."""
        known = self.locals.get(name)
        if known is None:
            self.locals[name] = value.dtype, value.weak
        else:
            self.locals[name] = promotion.join(Operand(ir.Name(name, known[0]), known[1]), value)
        self.assigned.add(name)
        self.guarded[-1].discard(name)
        converted = promotion.convert(value, self.locals[name][0])
        self.given.setdefault(name, []).append(converted)
        self.emit(ir.Assign(name, converted, getattr(node, "lineno", 1)))

    def usable(self, name: str, node: ast.AST, again: bool = False) -> None:
        """Refuse names C reserves and, unless ``again``, the index of a loop that has ended."""
        if c_name(name) != name or name in ("workspace", "workspace_size", "np"):
            raise self.refusal(node, f"the name '{name}', which is reserved,", "rename it")
        if name in self.finished and not again:
            raise self.refusal(node, f"'{name}', an index of an earlier loop,", "give it a name of its own")

    def fresh(self, wanted: str) -> str:
        """A name that occurs nowhere else in the function."""
        name, count = wanted, 1
        while name in self.taken or c_name(name) != name:
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        return name

    # ---- temporaries

    def allocation(self, name: str, value: ast.expr, node: ast.stmt) -> None:
        assert isinstance(value, ast.Call)
        assert isinstance(value.func, ast.Attribute)
        if self.depth:
            raise self.refusal(
                node, f"'{text(value)}' inside a loop or branch", "make temporaries at the top"
            )
        self.usable(name, node)
        if name in self.locals:
            raise self.refusal(node, f"'{name}' as a scalar and an array", "rename one")
        if name in self.arrays:
            raise self.refusal(node, f"a second '{name}'", "give it a name of its own")
        options = {word.arg: word.value for word in value.keywords}
        if len(value.args) not in (1, 2) or not set(options) <= {"dtype"}:
            raise self.refusal(node, f"'{text(value)}'", "write np.empty(shape, dtype=a.dtype)")
        first = value.args[0]
        if value.func.attr.endswith("_like"):
            if not isinstance(first, ast.Name) or first.id not in self.arrays:
                raise self.refusal(node, f"'{text(value)}'")
            shape, dtype = self.arrays[first.id].shape, self.arrays[first.id].dtype
        else:
            axes = first.elts if isinstance(first, ast.Tuple) else [first]
            shape, dtype = tuple(self.integer(axis) for axis in axes), "float64"
        if "dtype" in options or len(value.args) == 2:
            dtype = self.element_type(options["dtype"] if "dtype" in options else value.args[1])
        changed = frozenset(self.assigned)
        if any(ir.reads(axis) & changed for axis in shape):
            raise self.refusal(node, f"a shape of '{name}' that is computed", "use sizes of the manifest")
        self.arrays[name] = ir.Array(name, dtype, shape, local=True)
        self.emit(ir.Allocate(name, value.func.attr.startswith("zeros"), node.lineno))


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


def _as_load(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name():
            return ast.copy_location(ast.Name(target.id, ast.Load()), target)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
        case _:
            return target
