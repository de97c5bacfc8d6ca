"""What is certain about integers at a point of the text: sizes, knobs, loop indices, quotients, extrema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis import linear
from hpcagent_bench.translators.analysis.polynomials import Polynomial
from hpcagent_bench.translators.frontend.steps import Values
from hpcagent_bench.translators.frontend.sums import ONE, known, minus, number, plus, polynomial


@dataclass(frozen=True)
class Range:
    """A loop that is open: its index runs over ``range(start, stop, step)``, of which None is not known."""

    var: str
    start: ir.Expr | None
    stop: ir.Expr | None
    step: ir.Expr = ONE
    descending: bool = False

    @property
    def facts(self) -> tuple[ir.Expr, ...]:
        """Expressions that are not negative while the loop's body runs."""
        var = ir.Name(self.var, "int64")
        if self.start is None or self.stop is None:
            return ()
        if self.descending:
            return minus(self.start, var), minus(minus(var, self.stop), ONE)
        return minus(var, self.start), minus(minus(self.stop, var), ONE)


@dataclass
class Knowledge:
    """Proves that integers are not negative, from the loops around and what the manifest says.

    ``definitions`` are locals with one assignment, by what they are assigned; ``elements`` gives the lowest
    and highest element of integer arrays that never change.
    """

    settings: Sequence[Values] = ()
    sizes: frozenset[str] = frozenset()
    elements: Mapping[str, tuple[ir.Expr | None, ir.Expr | None]] = field(default_factory=dict)
    ranges: list[Range] = field(default_factory=list)
    definitions: dict[str, ir.Expr] = field(default_factory=dict)
    _proved: dict[object, bool] = field(default_factory=dict, repr=False)

    def expanded(self, expr: ir.Expr) -> ir.Expr:
        """With single-assignment locals written out."""
        if not ir.reads(expr) & self.definitions.keys():
            return expr
        return rewrite(expr, {name: self.expanded(value) for name, value in self.definitions.items()})

    def nonnegative(self, expr: ir.Expr) -> bool:
        """Whether ``expr >= 0`` is certain; False when it is not known."""
        value = known(expr)
        if value is not None:
            return value >= 0
        key = expr, tuple(self.ranges), tuple(self.definitions.items())
        if key not in self._proved:
            self._proved[key] = self._prove(expr)
        return self._proved[key]

    def _prove(self, expr: ir.Expr) -> bool:
        goal = -polynomial(self.expanded(expr)) - 1
        return linear.impossible([], [goal, *self.facts([self.expanded(expr)])])

    def at_least(self, left: ir.Expr, right: ir.Expr) -> bool:
        return self.nonnegative(minus(left, right))

    def facts(self, about: Iterable[ir.Expr], ranges: Sequence[Range] | None = None) -> list[Polynomial]:
        """Polynomials that are never negative, as far as they bear on the expressions."""
        facts: list[Polynomial] = []
        pending = [self.expanded(expr) for expr in about]
        for loop in self.ranges if ranges is None else ranges:
            pending += [self.expanded(fact) for fact in loop.facts]
            facts += [polynomial(self.expanded(fact)) for fact in loop.facts]
        seen: set[ir.Expr] = set()
        for expr in pending:
            for node in ir.walk(expr):
                if node not in seen:
                    seen.add(node)
                    facts += self._about(node)
        return facts

    def _about(self, node: ir.Expr) -> list[Polynomial]:
        this = polynomial(node)
        match node:
            case ir.Name(name=name):
                return self._scalar(name, this)
            case ir.Binary(op="//", right=ir.Const(value=int() as divisor)) if divisor > 0:
                rest = polynomial(node.left) - this * divisor
                return [rest, -rest + (divisor - 1)]
            case ir.Binary(op="%", right=ir.Const(value=int() as divisor)) if divisor > 0:
                return [this, -this + (divisor - 1)]
            case ir.Binary(op="%", right=ir.Name(name=name)) if name in self.sizes:
                return [this, polynomial(node.right) - this - 1]
            case ir.Call(function="min" | "minimum"):
                return [polynomial(arg) - this for arg in node.args]
            case ir.Call(function="max" | "maximum"):
                return [this - polynomial(arg) for arg in node.args]
            case ir.Load(array=name) if name in self.elements:
                low, high = (None if end is None else polynomial(end) for end in self.elements[name])
                return [*([] if low is None else [this - low]), *([] if high is None else [high - this])]
            case ir.Cast(operand=ir.Load() as load) if load.dtype.startswith("u") and load.dtype != "uint64":
                return [this]
            case _:
                return []

    def _scalar(self, name: str, this: Polynomial) -> list[Polynomial]:
        """A size is at least 1; a knob or scalar lies between its values in the manifest."""
        if name in self.sizes:
            return [this - 1]
        numbers = [values[name] for values in self.settings if name in values]
        if not numbers or not all(isinstance(value, int) for value in numbers):
            return []
        return [this - int(min(numbers)), -this + int(max(numbers))]


def rewrite(expr: ir.Expr, names: Mapping[str, ir.Expr]) -> ir.Expr:
    """The expression with integer names replaced."""
    match expr:
        case ir.Name(name=name):
            return names.get(name, expr)
        case ir.Binary(op="+"):
            return (
                plus(rewrite(expr.left, names), rewrite(expr.right, names))
                if _plain(expr)
                else _redone(expr, names)
            )
        case ir.Binary(op="-"):
            return (
                minus(rewrite(expr.left, names), rewrite(expr.right, names))
                if _plain(expr)
                else _redone(expr, names)
            )
        case _:
            return _redone(expr, names)


def _plain(expr: ir.Binary) -> bool:
    return expr.dtype == "int64" and not expr.wraps


def _redone(expr: ir.Expr, names: Mapping[str, ir.Expr]) -> ir.Expr:
    match expr:
        case ir.Const() | ir.Name():
            return expr
        case ir.Load():
            return ir.Load(expr.array, tuple(rewrite(axis, names) for axis in expr.index), expr.dtype)
        case ir.Cast():
            return ir.Cast(rewrite(expr.operand, names), expr.dtype)
        case ir.Unary():
            return ir.Unary(expr.op, rewrite(expr.operand, names), expr.dtype, expr.wraps)
        case ir.Binary():
            left, right = rewrite(expr.left, names), rewrite(expr.right, names)
            return ir.Binary(expr.op, left, right, expr.dtype, expr.wraps)
        case ir.Compare():
            return ir.Compare(expr.op, rewrite(expr.left, names), rewrite(expr.right, names))
        case ir.Logical():
            return ir.Logical(expr.op, tuple(rewrite(operand, names) for operand in expr.operands))
        case ir.Select():
            test, then = rewrite(expr.test, names), rewrite(expr.then, names)
            return ir.Select(test, then, rewrite(expr.orelse, names), expr.dtype)
        case ir.Call():
            return ir.Call(expr.function, tuple(rewrite(arg, names) for arg in expr.args), expr.dtype)
        case ir.Invoke():
            return ir.Invoke(expr.helper, tuple(rewrite(arg, names) for arg in expr.args), expr.dtype)


__all__ = ["Knowledge", "Range", "number", "rewrite"]
