"""Statements that fold a value into an accumulator in any order, but for rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpcagent_bench.translators import ir

_SAME = {"+": "+", "-": "+", "*": "*", "&": "and", "|": "or"}
_EXTREMA = {"min": "min", "max": "max", "minimum": "min", "maximum": "max"}
_BELOW = {"<": True, "<=": True, ">": False, ">=": False}


@dataclass(frozen=True)
class Reduction:
    """``op`` is one of + * min max and or; ``index`` is None for a scalar, else that of the array element."""

    name: str
    op: str
    index: tuple[ir.Expr, ...] | None = None


def scalar_reduction(name: str, body: tuple[ir.Stmt, ...], dtype: str) -> Reduction | None:
    """The reduction that all mentions of a local in a loop body make up together, if they do."""
    operators = {op for stmt in body for op in _operators(name, stmt, dtype)}
    if len(operators) != 1:
        return None
    (op,) = operators
    return None if op is None else Reduction(name, op)


def _operators(name: str, stmt: ir.Stmt, dtype: str) -> Iterator[str | None]:
    """The operator of each update of ``name`` inside a statement, None for any other mention of it."""
    flag = _flag(name, stmt)
    if flag is not None and dtype == "bool":
        yield flag
        return
    if isinstance(stmt, ir.If) and not stmt.orelse:
        op = _extremum_by_branch(name, stmt)
        if op is not None:
            yield op
            return
    if isinstance(stmt, ir.Assign) and stmt.name == name:
        found = _folded(stmt.value, lambda e: isinstance(e, ir.Name) and e.name == name, name)
        yield None if found is None else found[0]
        return
    if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
        yield None
    for inner in ir.nested(stmt):
        yield from _operators(name, inner, dtype)


def _flag(name: str, stmt: ir.Stmt) -> str | None:
    """``found = True`` raises a flag whatever the order: an or; ``= False`` an and."""
    if isinstance(stmt, ir.Assign) and stmt.name == name and isinstance(stmt.value, ir.Const):
        return "or" if stmt.value.value else "and"
    return None


def _extremum_by_branch(name: str, stmt: ir.If) -> str | None:
    """``if x < m: m = x``, either side first."""
    match stmt:
        case ir.If(test=ir.Compare(op=op) as test, body=(ir.Assign(name=target, value=value),)):
            if target != name or op not in _BELOW or name in ir.reads(value):
                return None
            left, right = _bare(test.left), _bare(test.right)
            mine = ir.Name(name, right.dtype)
            if left == _bare(value) and right == mine:
                return "min" if _BELOW[op] else "max"
            if right == _bare(value) and left == ir.Name(name, left.dtype):
                return "max" if _BELOW[op] else "min"
    return None


def _bare(expr: ir.Expr) -> ir.Expr:
    return _bare(expr.operand) if isinstance(expr, ir.Cast) else expr


def update_of_element(stmt: ir.Store) -> tuple[str, ir.Load] | None:
    """The operator of ``x[i] = x[i] + ...`` and the load of the element it updates."""

    def target(expr: ir.Expr) -> bool:
        return isinstance(expr, ir.Load) and expr.array == stmt.array and expr.index == stmt.index

    found = _folded(stmt.value, target, None)
    if found is None:
        return None
    op, load = found
    assert isinstance(load, ir.Load)
    return op, load


def _folded(
    value: ir.Expr, target: Callable[[ir.Expr], bool], name: str | None
) -> tuple[str, ir.Expr] | None:
    """The operator that folds the one operand that is ``target`` with operands that do not read ``name``."""
    op = _operator(value)
    if op is None:
        return None
    leaves = list(_leaves(value, op, True))
    mine = [leaf for leaf, positive in leaves if positive and target(leaf)]
    if len(mine) != 1 or len(leaves) < 2:
        return None
    others = [leaf for leaf, _ in leaves if leaf is not mine[0]]
    if name is not None and any(name in ir.reads(leaf) for leaf in others):
        return None
    return op, mine[0]


def _operator(value: ir.Expr) -> str | None:
    match value:
        case ir.Binary() if value.op in ("&", "|") and value.dtype != "bool":
            return None
        case ir.Binary():
            return _SAME.get(value.op)
        case ir.Logical():
            return value.op
        case ir.Call() if value.function in _EXTREMA and len(value.args) == 2:
            return _EXTREMA[value.function]
        case ir.Select(test=ir.Compare(op=op) as test) if op in _BELOW:
            pair = (_bare(value.then), _bare(value.orelse))
            if pair == (_bare(test.left), _bare(test.right)):
                return "min" if _BELOW[op] else "max"
            if pair == (_bare(test.right), _bare(test.left)):
                return "max" if _BELOW[op] else "min"
    return None


def _leaves(value: ir.Expr, op: str, positive: bool) -> Iterator[tuple[ir.Expr, bool]]:
    """The operands of a chain of one operator, with their signs."""
    if _operator(value) != op:
        yield value, positive
        return
    match value:
        case ir.Binary():
            yield from _leaves(value.left, op, positive)
            yield from _leaves(value.right, op, positive if value.op != "-" else not positive)
        case ir.Logical() | ir.Call():
            operands = value.operands if isinstance(value, ir.Logical) else value.args
            for operand in operands:
                yield from _leaves(operand, op, positive)
        case ir.Select():
            yield value.then, positive
            yield value.orelse, positive
