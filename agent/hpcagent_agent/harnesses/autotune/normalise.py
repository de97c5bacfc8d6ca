"""Bringing source into a regular form that the transformations see through."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import INTEGER_TYPES


def normalise(fn: ir.Function) -> ir.Function:
    """Same meaning, easier to read: allocations first, releases last, private scalars inside their loop."""
    if ir.has_raw(fn.body):
        return fn
    fn = fn.with_body(_own_counters(fn.body, ir.Fresh(fn), set(fn.scalars) | set(ir.declared(fn.body))))
    fn = fn.with_body(_allocations_outside(fn))
    for _ in range(len(ir.declared(fn.body)) * 3 + 1):
        new = fn.with_body(_sink(fn.body))
        if new.body == fn.body:
            break
        fn = new
    return fn.with_body(_inline_integers(fn.body))


def _own_counters(body: ir.Body, fresh: ir.Fresh, taken: set[str]) -> ir.Body:
    """Gives every loop a counter of its own name, so that bodies can be moved and merged without capture."""
    found: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Loop):
            own = replace(stmt, body=_own_counters(stmt.body, fresh, taken))
            if own.var in taken:
                renamed = ir.rename(
                    (replace(own, lo=ir.Num("0"), hi=ir.Num("0")),), {own.var: fresh(own.var)}
                )[0]
                assert isinstance(renamed, ir.Loop)
                own = replace(renamed, lo=own.lo, hi=own.hi)  # bounds are outside the scope of the counter
            taken.add(own.var)
            found.append(own)
        elif isinstance(stmt, ir.If):
            then, orelse = (_own_counters(part, fresh, taken) for part in (stmt.then, stmt.orelse))
            found.append(ir.If(stmt.cond, then, orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _allocations_outside(fn: ir.Function) -> ir.Body:
    """Buffers of constant size are allocated before, and released after, everything else."""
    varying = ir.writes(fn.body) | {
        s.name for s in fn.body if isinstance(s, ir.Decl) and not ir.is_allocation(s)
    }
    first = [s for s in fn.body if ir.is_allocation(s) and not ir.reads((s,)) & varying]
    last = [s for s in fn.body if ir.is_release(s)]
    rest = [s for s in fn.body if s not in first and s not in last]
    return (*first, *rest, *last)


def _sink(body: ir.Body) -> ir.Body:
    """Moves a scalar's declaration into the one loop that uses it and sets it first in every iteration."""
    stmts = list(body)
    for position, stmt in enumerate(stmts):
        if not isinstance(stmt, ir.Decl) or stmt.pointer or stmt.extent:
            continue
        users = [k for k, s in enumerate(stmts) if k != position and _mentions(s, stmt.name)]
        if len(users) == 1 and isinstance(user := stmts[users[0]], ir.Loop):
            inner = _declare_at_first_write(user.body, stmt)
            if inner is not None and not _in_header(user, stmt.name):
                stmts[users[0]] = replace(user, body=inner)
                return tuple(stmts[:position] + stmts[position + 1 :])
    return tuple(replace(s, body=_sink(s.body)) if isinstance(s, ir.Loop) else s for s in stmts)


def _mentions(stmt: ir.Stmt, name: str) -> bool:
    return name in ir.reads((stmt,)) | ir.writes((stmt,))


def _in_header(loop: ir.Loop, name: str) -> bool:
    return any(name in ir.reads((ir.Do(e),)) for e in (loop.lo, loop.hi))


def _declare_at_first_write(body: ir.Body, decl: ir.Decl) -> ir.Body | None:
    """The body with the declaration where the scalar is first met; None when it is not set there."""
    for position, stmt in enumerate(body):
        if not _mentions(stmt, decl.name):
            continue
        if isinstance(stmt, ir.Assign) and stmt.target == ir.Name(decl.name):
            if decl.name in ir.reads((ir.Do(stmt.value),)):
                return None
            return (*body[:position], ir.Decl(decl.type, decl.name, stmt.value), *body[position + 1 :])
        if isinstance(stmt, ir.Loop) and not _in_header(stmt, decl.name):
            alone = not any(_mentions(other, decl.name) for other in body[position + 1 :])
            inner = _declare_at_first_write(stmt.body, decl) if alone else None
            if inner is not None:
                return (*body[:position], replace(stmt, body=inner), *body[position + 1 :])
        return None
    return None


def _inline_integers(body: ir.Body) -> ir.Body:
    """Replaces integers that are only a name for an affine expression of counters and constants."""
    assigned = ir.writes(body)
    counters = {s.var for s in ir.statements(body) if isinstance(s, ir.Loop)}
    local = set(ir.declared(body)) - counters

    def inline(stmts: ir.Body) -> ir.Body:
        found: list[ir.Stmt] = []
        for position, stmt in enumerate(stmts):
            if isinstance(stmt, ir.Decl) and stmt.name not in assigned and _is_alias(stmt, assigned | local):
                rest = ir.substitute(stmts[position + 1 :], {stmt.name: stmt.init or ir.Num("0")})
                return (*found, *inline(rest))
            if isinstance(stmt, ir.Loop):
                found.append(replace(stmt, body=inline(stmt.body)))
            elif isinstance(stmt, ir.If):
                found.append(ir.If(stmt.cond, inline(stmt.then), inline(stmt.orelse)))
            else:
                found.append(stmt)
        return tuple(found)

    return inline(body)


def _is_alias(decl: ir.Decl, varying: set[str]) -> bool:
    if decl.type not in INTEGER_TYPES or decl.init is None:
        return False
    simple = all(isinstance(e, ir.Num | ir.Name | ir.Bin | ir.Un) for e in ir.walk(decl.init))
    affine = all(e.op in "+-*" for e in ir.walk(decl.init) if isinstance(e, ir.Bin | ir.Un))
    return simple and affine and not ir.reads((decl,)) & varying
