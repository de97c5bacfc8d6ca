"""Fortran evaluates what it likes: both operands of ``.and.``, both values of ``merge``.

Where that could read outside an array, the choice becomes an ``if`` ahead of the statement and its result a
local of its own. Loads that the statement makes anyway are safe in both branches of a choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.rewriting import mapped, with_bodies, with_expressions

Body = tuple[ir.Stmt, ...]


@dataclass
class Lowered:
    """A body without unsafe choices, the locals it needs besides, and each loop by the id of its original."""

    body: Body = ()
    locals: dict[str, str] = field(default_factory=dict)
    loops: dict[int, ir.For] = field(default_factory=dict)


def lowered(body: Body, taken: set[str]) -> Lowered:
    """``body`` rewritten; ``taken`` are names that the new locals must not have."""
    lowering = _Lowering(set(taken))
    return Lowered(lowering.body(body), lowering.locals, lowering.loops)


class _Lowering:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.locals: dict[str, str] = {}
        self.loops: dict[int, ir.For] = {}
        self.before: list[ir.Stmt] = []
        self.line = 0

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Body:
        if isinstance(stmt, ir.While) and not _plain(stmt.test):
            return (self._endless(stmt),)
        direct = self._choice(stmt)
        if direct is not None:
            return direct
        outer, self.before, self.line = self.before, [], stmt.line
        safe = _certain(stmt)
        new = with_expressions(stmt, lambda expr: self.expr(expr, safe))
        ahead, self.before = tuple(self.before), outer
        new = with_bodies(new, self.body)
        if isinstance(stmt, ir.For) and isinstance(new, ir.For):
            self.loops[id(stmt)] = new
        return (*ahead, new)

    def _choice(self, stmt: ir.Stmt) -> Body | None:
        """``x = a if t else b`` with an unsafe choice is ``if t: x = a else: x = b``."""
        if not isinstance(stmt, (ir.Assign, ir.Store)) or not isinstance(stmt.value, ir.Select):
            return None
        if _plain(stmt.value) or _harmless(stmt.value, _certain(stmt)):
            return None
        select = stmt.value
        then, orelse = replace(stmt, value=select.then), replace(stmt, value=select.orelse)
        return self.statement(ir.If(select.test, (then,), (orelse,), stmt.line))

    def _endless(self, stmt: ir.While) -> ir.Stmt:
        """A loop whose test needs statements ahead of it: they run in every iteration."""
        leave = ir.If(ir.Unary("not", stmt.test, "bool"), (ir.Jump("break", stmt.line),), (), stmt.line)
        return ir.While(ir.Const(True, "bool"), (*self.statement(leave), *self.body(stmt.body)), stmt.line)

    def expr(self, expr: ir.Expr, safe: frozenset[ir.Load]) -> ir.Expr:
        if _plain(expr) or not isinstance(expr, (ir.Select, ir.Logical)):
            return expr if _plain(expr) else mapped(expr, lambda inner: self.expr(inner, safe))
        if _harmless(expr, safe):
            return mapped(expr, lambda inner: self.expr(inner, safe))
        name = self._local(expr.dtype)
        if isinstance(expr, ir.Select):
            chosen = ir.Select(expr.test, expr.then, expr.orelse, expr.dtype)
            self.before += self.statement_ahead(ir.Assign(name, chosen, self.line))
        else:
            first, rest = expr.operands[0], expr.operands[1:]
            self.before += self.statement_ahead(ir.Assign(name, first, self.line))
            test: ir.Expr = ir.Name(name, "bool")
            test = test if expr.op == "and" else ir.Unary("not", test, "bool")
            for operand in rest:
                then = self.statement_ahead(ir.Assign(name, operand, self.line))
                self.before.append(ir.If(test, tuple(then), (), self.line))
        return ir.Name(name, expr.dtype)

    def statement_ahead(self, stmt: ir.Assign) -> Body:
        line = self.line
        result = self.statement(stmt)
        self.line = line
        return result

    def _local(self, dtype: str) -> str:
        name, count = "choice", 1
        while name in self.taken:
            count += 1
            name = f"choice{count}"
        self.taken.add(name)
        self.locals[name] = dtype
        return name


def _plain(expr: ir.Expr) -> bool:
    """Whether an expression has no choice in it at all."""
    return not any(isinstance(node, (ir.Select, ir.Logical)) for node in ir.walk(expr))


def _harmless(expr: ir.Select | ir.Logical, safe: frozenset[ir.Load]) -> bool:
    """Whether all of a choice may be evaluated: no loads but certain ones, nothing that could stop."""
    parts = ir.children(expr)
    known = safe | _loads(parts[0])
    late = parts[1:]
    risky = (ir.Invoke,)
    return all(
        not isinstance(node, risky) and (not isinstance(node, ir.Load) or node in known)
        for part in late
        for node in ir.walk(part)
    )


def _certain(stmt: ir.Stmt) -> frozenset[ir.Load]:
    """Loads a statement makes whatever its choices are."""
    return frozenset[ir.Load]().union(*(_loads(expr) for expr in ir.expressions(stmt)))


def _loads(expr: ir.Expr) -> frozenset[ir.Load]:
    """Loads an expression certainly makes."""
    if isinstance(expr, ir.Select):
        return _loads(expr.test)
    if isinstance(expr, ir.Logical):
        return _loads(expr.operands[0])
    found = frozenset[ir.Load]().union(*(_loads(child) for child in ir.children(expr)))
    return found | {expr} if isinstance(expr, ir.Load) else found
