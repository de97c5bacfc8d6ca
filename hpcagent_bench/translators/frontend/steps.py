"""The direction of a loop whose step is no literal: it must be the same for every input of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir

Values = Mapping[str, int | float]


def settings(kernel: Kernel) -> list[dict[str, int | float]]:
    """The scalar arguments of every configuration at every preset and at the edge sizes."""
    sizes: list[dict[str, int]] = list(kernel.presets.values())
    sizes += [dict.fromkeys(kernel.size_symbols, size) for size in (1, 3, 5, 6, 7)]
    return [kernel.scalars({**row, **chosen}) for row in kernel.configs for chosen in sizes]


def value(expr: ir.Expr, values: Values) -> int | float | None:
    """An expression over scalar arguments, None when it reads anything else."""
    match expr:
        case ir.Const() if not isinstance(expr.value, complex):
            return expr.value
        case ir.Name():
            return values.get(expr.name)
        case ir.Cast() if ir.is_integer(expr.dtype):
            inner = value(expr.operand, values)
            return None if inner is None else int(inner)
        case ir.Unary(op="-"):
            inner = value(expr.operand, values)
            return None if inner is None else -inner
        case ir.Binary(op="+" | "-" | "*" | "//" | "%"):
            left, right = value(expr.left, values), value(expr.right, values)
            return None if left is None or right is None else _binary(expr.op, left, right)
        case ir.Call(function="min" | "max"):
            parts = [value(arg, values) for arg in expr.args]
            known = [part for part in parts if part is not None]
            return None if len(known) < len(parts) else (min if expr.function == "min" else max)(known)
        case _:
            return None


def _binary(op: str, left: int | float, right: int | float) -> int | float | None:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        return None
    return left // right if op == "//" else left % right


class Signs:
    """Which integer scalars are positive whenever they have a value.

    A scalar argument is when every setting says so, a local when every value it is given is, supposing that
    for the locals themselves (so ``span = 2``, then ``span *= 2`` is).
    """

    def __init__(self, arguments: Sequence[Values], assignments: Mapping[str, Iterable[ir.Expr]]) -> None:
        self.arguments = arguments
        self.positive = set(assignments)
        while True:
            wrong = {
                name for name in self.positive if not all(self.of(expr) == 1 for expr in assignments[name])
            }
            if not wrong:
                break
            self.positive -= wrong

    def of(self, expr: ir.Expr, also: frozenset[str] = frozenset()) -> int:
        """1 or -1 for an expression that is certainly of that sign, else 0; ``also`` are positive too."""
        known = [value(expr, values) for values in self.arguments]
        numbers = [number for number in known if number is not None]
        if len(numbers) == len(known) and numbers:
            return 1 if min(numbers) > 0 else -1 if max(numbers) < 0 else 0
        match expr:
            case ir.Name():
                return 1 if expr.name in self.positive or expr.name in also else 0
            case ir.Cast():
                return self.of(expr.operand, also) if ir.is_integer(expr.operand.dtype) else 0
            case ir.Unary(op="-"):
                return -self.of(expr.operand, also)
            case ir.Binary(op="*"):
                return self.of(expr.left, also) * self.of(expr.right, also)
            case ir.Binary(op="**" | "<<"):
                return 1 if self.of(expr.left, also) == 1 else 0
            case ir.Binary(op="+"):
                left, right = self.of(expr.left, also), self.of(expr.right, also)
                return left if left == right else 0
            case ir.Call(function="min" | "max"):
                signs = {self.of(arg, also) for arg in expr.args}
                return signs.pop() if len(signs) == 1 else 0
            case _:
                return 0
