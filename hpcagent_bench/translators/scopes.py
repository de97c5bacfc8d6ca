"""Where a local scalar lives: Python has one scope a function, C declares each value where it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hpcagent_bench.translators import ir


@dataclass
class Scopes:
    """``declaring`` holds the ids of assignments that declare their target; ``top`` the locals put first.

    A local is declared by its first assignment when every other mention lies in the same block or deeper and
    that assignment does not depend on an earlier value; else at the top of the function, as zero.
    """

    declaring: set[int] = field(default_factory=set)
    top: list[str] = field(default_factory=list)


def scopes(function: ir.Function) -> Scopes:
    """The place of every local scalar of ``function``."""
    found = Scopes()
    for name in function.locals:
        home = _home(name, function.body)
        if home is None:
            found.top.append(name)
        else:
            found.declaring.add(id(home))
    return found


def private(name: str, loop: ir.For) -> bool:
    """Whether a local's value never outlives an iteration of ``loop``, judged from the loop body alone."""
    return _home(name, loop.body) is not None


def _home(name: str, block: tuple[ir.Stmt, ...]) -> ir.Assign | None:
    """The assignment that starts the value, or None when a value flows in from before."""
    mentioning = [stmt for stmt in block if mentions(name, stmt)]
    if not mentioning:
        return None
    first = mentioning[0]
    if isinstance(first, ir.Assign):
        return None if first.name != name or name in ir.reads(first.value) else first
    if len(mentioning) > 1 or any(name in ir.reads(expr) for expr in ir.expressions(first)):
        return None
    match first:
        case ir.For():
            return _home(name, first.body)
        case ir.If():
            holding = [
                branch for branch in (first.body, first.orelse) if any(mentions(name, s) for s in branch)
            ]
            return _home(name, holding[0]) if len(holding) == 1 else None
        case _:
            return None


def mentions(name: str, stmt: ir.Stmt) -> bool:
    """Whether a statement reads or writes the scalar ``name``, nested statements included."""
    if isinstance(stmt, ir.Assign) and stmt.name == name:
        return True
    if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
        return True
    return any(mentions(name, inner) for inner in ir.nested(stmt))
