"""Statements of a reference: loops and branches, and the passes that settle dtypes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend.assignments import Assignments
from hpcagent_bench.translators.frontend.knowledge import Range
from hpcagent_bench.translators.frontend.promotion import Mismatch
from hpcagent_bench.translators.frontend.reading import text
from hpcagent_bench.translators.frontend.steps import Signs, Values
from hpcagent_bench.translators.frontend.sums import ONE, ZERO

_MOST_PASSES = 12


@dataclass
class StatementReader(Assignments):
    """Reads the statements of one function; ``signs`` knows the locals' signs from the pass before."""

    signs: Signs | None = None
    signed: bool = False  # whether the direction of some loop depends on signs

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


def _counted(nodes: list[ast.stmt]) -> tuple[Counter[str], set[str]]:
    """How often names are assigned, and which are only ever indices of loops."""
    every = [node for top in nodes for node in ast.walk(top)]
    stores = Counter(n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    loops = Counter(n.target.id for n in every if isinstance(n, ast.For) and isinstance(n.target, ast.Name))
    return stores, {name for name, count in loops.items() if count == stores[name]}
