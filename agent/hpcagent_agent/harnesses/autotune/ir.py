"""The typed form autotune works on: expressions, statements and loops of one C function, all immutable.

Loops are canonical: ``for (int64_t var = lo; var < hi; var += step)``, ``var > hi`` for negative steps.
Whatever the parser does not understand becomes ``Raw`` text, which no transformation moves or crosses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Num:
    """A literal, spelled as in the source."""

    text: str


@dataclass(frozen=True)
class Name:
    """A scalar variable, or an array passed whole."""

    id: str


@dataclass(frozen=True)
class Sub:
    """``array[index]``, flat and row-major."""

    array: str
    index: Expr


@dataclass(frozen=True)
class Bin:
    """``left op right``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Un:
    """``op operand`` (prefix)."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Call:
    """A call by name."""

    fn: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Sel:
    """``cond ? yes : no``."""

    cond: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Cast:
    """``(type)operand``."""

    type: str
    operand: Expr


Expr = Num | Name | Sub | Bin | Un | Call | Sel | Cast


@dataclass(frozen=True)
class Decl:
    """``type name[extent] = init``; the type of a pointer ends in ``*`` (qualifiers follow the star)."""

    type: str
    name: str
    init: Expr | None = None
    extent: int = 0

    @property
    def pointer(self) -> bool:
        return "*" in self.type


@dataclass(frozen=True)
class Assign:
    """``target = value``; compound assignments are spelled out."""

    target: Name | Sub
    value: Expr


@dataclass(frozen=True)
class Loop:
    """A counted loop. ``floor``: an affine lower bound of ``lo``, where ``lo`` is not affine itself."""

    var: str
    lo: Expr
    hi: Expr
    step: int
    body: tuple[Stmt, ...]
    pragma: str = ""
    floor: Expr | None = None


@dataclass(frozen=True)
class If:
    """A conditional."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Do:
    """An expression evaluated for its effect, such as ``free(t)``."""

    expr: Expr


@dataclass(frozen=True)
class Raw:
    """C text that is kept as it is and never moved."""

    text: str


Stmt = Decl | Assign | Loop | If | Do | Raw
Body = tuple[Stmt, ...]


@dataclass(frozen=True)
class Function:
    """One C function: its printed signature, the element type of each pointer, the type of each scalar."""

    signature: str
    pointers: Mapping[str, str]
    scalars: Mapping[str, str]
    body: Body
    includes: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()

    def with_body(self, body: Body) -> Function:
        return replace(self, body=body)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Sub(_, index):
            return (index,)
        case Bin(_, left, right):
            return (left, right)
        case Un(_, operand) | Cast(_, operand):
            return (operand,)
        case Call(_, args):
            return args
        case Sel(cond, yes, no):
            return (cond, yes, no)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def map_expr(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Rewrites top down: where ``change`` answers, its answer stands and is not entered again."""
    changed = change(expr)
    if changed is not None:
        return changed
    match expr:
        case Sub(array, index):
            return Sub(array, map_expr(index, change))
        case Bin(op, left, right):
            return Bin(op, map_expr(left, change), map_expr(right, change))
        case Un(op, operand):
            return Un(op, map_expr(operand, change))
        case Cast(type_, operand):
            return Cast(type_, map_expr(operand, change))
        case Call(fn, args):
            return Call(fn, tuple(map_expr(arg, change) for arg in args))
        case Sel(cond, yes, no):
            return Sel(map_expr(cond, change), map_expr(yes, change), map_expr(no, change))
        case _:
            return expr


def map_body(body: Body, change: Callable[[Expr], Expr | None]) -> Body:
    """Applies ``map_expr`` to every expression of the statements; a changed target must stay a target."""
    return tuple(_map_stmt(stmt, change) for stmt in body)


def _map_stmt(stmt: Stmt, change: Callable[[Expr], Expr | None]) -> Stmt:
    match stmt:
        case Decl(type_, name, init, extent) if init is not None:
            return Decl(type_, name, map_expr(init, change), extent)
        case Assign(target, value):
            new = map_expr(target, change)
            if not isinstance(new, Name | Sub):
                raise ValueError(f"an assignment target became {new}")
            return Assign(new, map_expr(value, change))
        case Loop():
            floor = None if stmt.floor is None else map_expr(stmt.floor, change)
            lo, hi = map_expr(stmt.lo, change), map_expr(stmt.hi, change)
            return replace(stmt, lo=lo, hi=hi, floor=floor, body=map_body(stmt.body, change))
        case If(cond, then, orelse):
            return If(map_expr(cond, change), map_body(then, change), map_body(orelse, change))
        case Do(expr):
            return Do(map_expr(expr, change))
        case _:
            return stmt


def substitute(body: Body, values: Mapping[str, Expr]) -> Body:
    """Replaces scalar names, which the statements neither declare nor assign, by expressions."""
    return map_body(body, lambda e: values.get(e.id) if isinstance(e, Name) else None)


def substitute_expr(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    return map_expr(expr, lambda e: values.get(e.id) if isinstance(e, Name) else None)


def rename(body: Body, names: Mapping[str, str]) -> Body:
    """Renames variables everywhere: uses, declarations, array names, loop variables."""

    def change(expr: Expr) -> Expr | None:
        if isinstance(expr, Name) and expr.id in names:
            return Name(names[expr.id])
        if isinstance(expr, Sub) and expr.array in names:
            return Sub(names[expr.array], map_expr(expr.index, change))
        return None

    def own(stmt: Stmt) -> Stmt:
        match stmt:
            case Decl():
                return replace(stmt, name=names.get(stmt.name, stmt.name))
            case Loop():
                return replace(stmt, var=names.get(stmt.var, stmt.var), body=tuple(map(own, stmt.body)))
            case If():
                return replace(stmt, then=tuple(map(own, stmt.then)), orelse=tuple(map(own, stmt.orelse)))
            case _:
                return stmt

    return tuple(own(stmt) for stmt in map_body(body, change))


def statements(body: Body) -> Iterator[Stmt]:
    """Every statement at every depth, in textual order."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Loop):
            yield from statements(stmt.body)
        elif isinstance(stmt, If):
            yield from statements(stmt.then)
            yield from statements(stmt.orelse)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement itself evaluates (bodies of loops and conditionals excluded)."""
    match stmt:
        case Decl(_, _, init):
            return () if init is None else (init,)
        case Assign(target, value):
            return (value, target.index) if isinstance(target, Sub) else (value,)
        case Loop(_, lo, hi):
            return (lo, hi)
        case If(cond):
            return (cond,)
        case Do(expr):
            return (expr,)
        case _:
            return ()


def reads(body: Body) -> set[str]:
    """Names of scalars and arrays read anywhere in the statements; raw text reads every word in it."""
    found: set[str] = set()
    for stmt in statements(body):
        if isinstance(stmt, Raw):
            found |= words(stmt)
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Name):
                    found.add(node.id)
                elif isinstance(node, Sub):
                    found.add(node.array)
    return found


def writes(body: Body) -> set[str]:
    """Names of scalars and arrays assigned anywhere in the statements (declarations excluded)."""
    found: set[str] = set()
    for stmt in statements(body):
        if isinstance(stmt, Assign):
            found.add(stmt.target.array if isinstance(stmt.target, Sub) else stmt.target.id)
        elif isinstance(stmt, Raw):
            found |= words(stmt)
    return found


def words(raw: Raw) -> set[str]:
    """The identifiers in raw text."""
    return set(re.findall(r"[A-Za-z_]\w*", raw.text))


def declared(body: Body) -> dict[str, Decl]:
    """Declarations at any depth of the statements."""
    return {stmt.name: stmt for stmt in statements(body) if isinstance(stmt, Decl)}


def has_raw(body: Body) -> bool:
    """Whether something the parser did not understand is in there."""
    return any(isinstance(stmt, Raw) for stmt in statements(body))


def innermost(loop: Loop) -> bool:
    """Whether no loop is inside."""
    return not any(isinstance(stmt, Loop) for stmt in statements(loop.body))


def used_names(fn: Function) -> set[str]:
    """Every name the function knows, so that a fresh one can be chosen."""
    names = set(fn.pointers) | set(fn.scalars) | reads(fn.body) | writes(fn.body) | set(declared(fn.body))
    return names | {stmt.var for stmt in statements(fn.body) if isinstance(stmt, Loop)}


def is_allocation(stmt: Stmt) -> bool:
    """``type *name = malloc(...)`` or ``calloc``, cast or not."""
    if not isinstance(stmt, Decl) or not stmt.pointer or stmt.init is None:
        return False
    init = stmt.init.operand if isinstance(stmt.init, Cast) else stmt.init
    return isinstance(init, Call) and init.fn in ("malloc", "calloc", "aligned_alloc")


def is_release(stmt: Stmt, name: str | None = None) -> bool:
    """``free(name)``."""
    if not isinstance(stmt, Do) or not isinstance(stmt.expr, Call) or stmt.expr.fn != "free":
        return False
    return name is None or stmt.expr.args == (Name(name),)


class Fresh:
    """Hands out names nobody uses yet."""

    def __init__(self, fn: Function) -> None:
        self._used = used_names(fn)

    def __call__(self, base: str) -> str:
        name, count = base, 0
        while name in self._used:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return name
