"""How low an integer expression can go: where it cannot be negative, ``//`` and ``%`` are C's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpcagent_bench.translators import ir


class Signs:
    """Lowest values of names at a point of the program."""

    def __init__(self, least: Mapping[str, int]) -> None:
        self._least = dict(least)

    def within(self, loop: ir.For) -> Signs:
        """What is known inside ``loop``."""
        edge = self.least(loop.stop) if loop.descending else self.least(loop.start)
        inner = {name: low for name, low in self._least.items() if name != loop.var}
        if edge is not None:
            inner[loop.var] = edge + 1 if loop.descending else edge
        return Signs(inner)

    def least(self, expr: ir.Expr) -> int | None:
        """A value that an int64 ``expr`` never falls below, or None."""
        match expr:
            case ir.Const() if isinstance(expr.value, int):
                return int(expr.value)
            case ir.Name():
                return self._least.get(expr.name)
            case ir.Cast() if expr.operand.dtype.startswith("u") or expr.operand.dtype == "bool":
                return 0 if expr.operand.dtype != "uint64" else None
            case ir.Binary() if expr.dtype == "int64" and not expr.wraps:
                return self._binary(expr)
            case ir.Call(function="min" | "minimum"):
                lows = [self.least(arg) for arg in expr.args]
                return (
                    min((low for low in lows if low is not None), default=None) if None not in lows else None
                )
            case ir.Call(function="max" | "maximum"):
                return max((low for arg in expr.args if (low := self.least(arg)) is not None), default=None)
            case _:
                return None

    def _binary(self, expr: ir.Binary) -> int | None:
        left, right = self.least(expr.left), self.least(expr.right)
        if expr.op == "%":
            return 0 if right is not None and right > 0 else None
        if expr.op == "-":
            constant = expr.right.value if isinstance(expr.right, ir.Const) else None
            return left - constant if left is not None and isinstance(constant, int) else None
        if left is None or right is None or (expr.op != "+" and (left < 0 or right < 0)):
            return None
        match expr.op:
            case "+":
                return left + right
            case "*":
                return left * right
            case "//" | ">>" | "&" | "|" | "^":
                return 0
            case _:
                return None

    def divides_plainly(self, left: ir.Expr, right: ir.Expr) -> bool:
        """Whether ``left // right`` and ``left % right`` of int64 are truncation and remainder."""
        low, divisor = self.least(left), self.least(right)
        return low is not None and low >= 0 and divisor is not None and divisor > 0


def of_function(function: ir.Function, least: Mapping[str, int]) -> Signs:
    """What is known in a whole function: scalar arguments as given, locals that stay positive or at zero.

    A local counts as long as every value it is given is at least as large, supposing the same of the others.
    """
    hoped = dict.fromkeys((name for name, dtype in function.locals.items() if dtype == "int64"), 1)
    while True:
        signs = Signs({**hoped, **least})
        fallen = {
            name for name, low in _assigned(function.body, signs) if name in hoped and low < hoped[name]
        }
        if not fallen:
            return signs
        hoped = {name: low - (name in fallen) for name, low in hoped.items() if name not in fallen or low > 0}


def _assigned(body: tuple[ir.Stmt, ...], signs: Signs) -> Iterator[tuple[str, int]]:
    """Every assignment to a local, with the lowest value it may give; -1 where nothing is known."""
    for stmt in body:
        if isinstance(stmt, ir.Assign):
            low = signs.least(stmt.value)
            yield stmt.name, -1 if low is None else low
        yield from _assigned(ir.nested(stmt), signs.within(stmt) if isinstance(stmt, ir.For) else signs)
