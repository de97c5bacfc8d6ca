"""Where a local scalar lives: Python has one scope a function, C declares each value where it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hpcagent_bench.translators import ir


@dataclass
class Scopes:
    """``declaring`` holds the ids of assignments that declare their target; ``before`` maps the id of a
    statement to the locals declared ahead of it, in the innermost block that holds the whole of their life.
    """

    declaring: set[int] = field(default_factory=set)
    before: dict[int, list[str]] = field(default_factory=dict)


def scopes(locals_: dict[str, str], body: tuple[ir.Stmt, ...]) -> Scopes:
    """The place of every local scalar of a function or helper."""
    found = Scopes()
    for name in locals_:
        _place(name, body, found)
    return found


def private(name: str, loop: ir.For) -> bool:
    """Whether every iteration of ``loop`` gives the local a value before it reads it."""
    return not _exposed(name, loop.body)


def mentions(name: str, stmt: ir.Stmt) -> bool:
    """Whether a statement reads or writes the scalar ``name``, nested statements included."""
    if isinstance(stmt, ir.Assign) and stmt.name == name:
        return True
    if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
        return True
    return any(mentions(name, inner) for inner in ir.nested(stmt))


def _place(name: str, block: tuple[ir.Stmt, ...], found: Scopes) -> None:
    """Declare ``name`` in ``block`` or, when no value crosses from one statement to the next, further in."""
    mentioning = [stmt for stmt in block if mentions(name, stmt)]
    for stmt in mentioning:
        if isinstance(stmt, ir.Assign) and stmt.name == name and name not in ir.reads(stmt.value):
            found.declaring.add(id(stmt))
            return
        inner = _own_blocks(name, stmt)
        if inner is None or any(_exposed(name, body) for body in inner) or _crosses(name, stmt, mentioning):
            found.before.setdefault(id(stmt), []).append(name)
            return
        for body in inner:
            _place(name, body, found)


def _crosses(name: str, stmt: ir.Stmt, mentioning: list[ir.Stmt]) -> bool:
    """Whether a value of ``name`` may flow from ``stmt`` into a later statement of its block."""
    position = next(k for k, other in enumerate(mentioning) if other is stmt)
    return _exposed(name, tuple(mentioning[position + 1 :]))


def _own_blocks(name: str, stmt: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...] | None:
    """The blocks directly inside a statement, or None when it reads ``name`` itself or has none."""
    if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
        return None
    match stmt:
        case ir.For() | ir.While():
            return (stmt.body,)
        case ir.If():
            return (stmt.body, stmt.orelse)
        case _:
            return None


def _exposed(name: str, block: tuple[ir.Stmt, ...]) -> bool:
    """Whether ``block`` may read a value that ``name`` had before it."""
    for stmt in block:
        if any(name in ir.reads(expr) for expr in ir.expressions(stmt)):
            return True
        match stmt:
            case ir.Assign() if stmt.name == name:
                return False
            case ir.If():
                if _exposed(name, stmt.body) or _exposed(name, stmt.orelse):
                    return True
                if _settles(name, stmt.body) and _settles(name, stmt.orelse):
                    return False
            case ir.For() | ir.While():
                if _exposed(name, stmt.body):
                    return True
            case _:
                pass
    return False


def _settles(name: str, block: tuple[ir.Stmt, ...]) -> bool:
    """Whether whatever follows ``block`` sees a value of ``name`` that the block gave, or is not reached."""
    for stmt in block:
        match stmt:
            case ir.Assign() if stmt.name == name:
                return True
            case ir.Jump() | ir.Return():
                return True
            case ir.If() if _settles(name, stmt.body) and _settles(name, stmt.orelse):
                return True
            case _:
                pass
    return False
