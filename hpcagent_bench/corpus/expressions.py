"""The small expression language of manifests: integer arithmetic for shapes, comparisons for constraints."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from hpcagent_bench.errors import UserError

Number = int | float

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise UserError(f"expression '{text}' cannot be read", f"{error.msg}") from None


def symbols(text: str) -> frozenset[str]:
    """The names an expression reads."""
    return frozenset(node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name))


def axes(shape: str) -> tuple[str, ...]:
    """The expression of each axis: ``"(N, M + 1)"`` gives ``("N", "M + 1")``; no tuple means one axis."""
    tree = _parse(shape)
    elements = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(ast.unparse(element) for element in elements)


class _Substitute(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, Number]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def substitute(text: str, values: Mapping[str, Number]) -> str:
    """``text`` with the names of ``values`` replaced by their numbers; the rest keeps its spelling."""
    if not symbols(text) & set(values):
        return text
    return ast.unparse(_Substitute(values).visit(_parse(text)))


def _evaluate(node: ast.expr, values: Mapping[str, Number], text: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise UserError(f"expression '{text}' reads '{node.id}', which is not declared")
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _evaluate(node.left, values, text), _evaluate(node.right, values, text)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise UserError(f"expression '{text}' divides by zero")
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, values, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _evaluate(node.operand, values, text)
    if isinstance(node, ast.Compare):
        terms = [_evaluate(term, values, text) for term in (node.left, *node.comparators)]
        pairs = zip(node.ops, terms[:-1], terms[1:], strict=True)
        return all(_COMPARISON[type(op)](a, b) for op, a, b in pairs if _known(op, text))
    if isinstance(node, ast.BoolOp):
        parts = [bool(_evaluate(part, values, text)) for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    raise UserError(f"expression '{text}' uses '{ast.unparse(node)}'", "allowed: + - * // % and comparisons")


def _known(op: ast.cmpop, text: str) -> bool:
    if type(op) not in _COMPARISON:
        raise UserError(f"expression '{text}' uses a comparison that is not allowed", "< <= > >= == !=")
    return True


def integer(text: str, values: Mapping[str, Number]) -> int:
    """The value of an integer expression; anything else is a UserError quoting it."""
    value = _evaluate(_parse(text), values, text)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UserError(f"expression '{text}' gives {value!r}", "an integer is needed")
    return value


def number(text: str, values: Mapping[str, Number]) -> Number:
    """The value of an arithmetic expression; anything else is a UserError quoting it."""
    value = _evaluate(_parse(text), values, text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"expression '{text}' gives {value!r}", "a number is needed")
    return value


def truth(text: str, values: Mapping[str, Number]) -> bool:
    """The value of a constraint."""
    return bool(_evaluate(_parse(text), values, text))
