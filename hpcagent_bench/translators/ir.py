"""The typed form of a NumPy reference: loops over scalars and array elements, nothing else.

Every expression carries the dtype it computes in: ``bool``, ``int64`` or a float (the run's precision, or the
one an array pins). Integers are int64 throughout; narrower integer arrays widen on load and narrow on store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_RANK = {"bool": 0, "int64": 1, "float32": 2, "float64": 3}


def promote(*dtypes: str) -> str:
    """The dtype an operation on ``dtypes`` computes in."""
    return max(dtypes, key=_RANK.__getitem__)


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


@dataclass(frozen=True)
class Const:
    value: int | float | bool
    dtype: str


@dataclass(frozen=True)
class Name:
    """A scalar argument, a local scalar or a loop index."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Load:
    array: str
    index: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True)
class Unary:
    """``op`` is ``-`` or ``not``."""

    op: str
    operand: Expr
    dtype: str


@dataclass(frozen=True)
class Binary:
    """``op`` is one of + - * / // % **."""

    op: str
    left: Expr
    right: Expr
    dtype: str


@dataclass(frozen=True)
class Compare:
    op: str
    left: Expr
    right: Expr
    dtype: str = "bool"


@dataclass(frozen=True)
class Logical:
    """``op`` is ``and`` or ``or``."""

    op: str
    operands: tuple[Expr, ...]
    dtype: str = "bool"


@dataclass(frozen=True)
class Select:
    """``then`` where ``test`` holds, else ``orelse``."""

    test: Expr
    then: Expr
    orelse: Expr
    dtype: str


@dataclass(frozen=True)
class Call:
    """A mathematical function of floats, by its NumPy name."""

    function: str
    args: tuple[Expr, ...]
    dtype: str


Expr = Const | Name | Load | Unary | Binary | Compare | Logical | Select | Call


@dataclass(frozen=True)
class Assign:
    """A local scalar takes a value."""

    name: str
    value: Expr
    line: int


@dataclass(frozen=True)
class Store:
    array: str
    index: tuple[Expr, ...]
    value: Expr
    line: int


@dataclass(frozen=True)
class For:
    """``for var in range(start, stop, step)``; ``step`` is a nonzero literal; bounds are read once."""

    var: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    line: int


@dataclass(frozen=True)
class If:
    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    line: int


@dataclass(frozen=True)
class Allocate:
    """A local array comes into being, zeroed or not; its shape is in ``Function.arrays``."""

    array: str
    zeroed: bool
    line: int


@dataclass(frozen=True)
class Jump:
    """``kind`` is ``break`` or ``continue``."""

    kind: str
    line: int


Stmt = Assign | Store | For | If | Allocate | Jump


@dataclass(frozen=True)
class Array:
    """``dtype`` is that of its elements in memory; ``shape`` one expression per axis."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    local: bool


@dataclass(frozen=True)
class Function:
    """One kernel: arguments in the reference's order; arrays, scalars and locals with their dtypes; body."""

    name: str
    arg_order: tuple[str, ...]
    arrays: dict[str, Array]
    scalars: dict[str, str]
    locals: dict[str, str]
    body: tuple[Stmt, ...]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Const() | Name():
            return ()
        case Load():
            return expr.index
        case Unary():
            return (expr.operand,)
        case Binary() | Compare():
            return (expr.left, expr.right)
        case Logical():
            return expr.operands
        case Select():
            return (expr.test, expr.then, expr.orelse)
        case Call():
            return expr.args


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """What a statement itself evaluates, nested statements left out."""
    match stmt:
        case Assign():
            return (stmt.value,)
        case Store():
            return (*stmt.index, stmt.value)
        case For():
            return (stmt.start, stmt.stop)
        case If():
            return (stmt.test,)
        case Allocate() | Jump():
            return ()


def nested(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a loop or a branch."""
    match stmt:
        case For():
            return stmt.body
        case If():
            return (*stmt.body, *stmt.orelse)
        case _:
            return ()


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a body in program order, outer ones before what they hold."""
    for stmt in body:
        yield stmt
        yield from statements(nested(stmt))


def assigned(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Scalars, loop indices and arrays that a body writes."""
    written: set[str] = set()
    for stmt in statements(body):
        match stmt:
            case Assign():
                written.add(stmt.name)
            case For():
                written.add(stmt.var)
            case Store() | Allocate():
                written.add(stmt.array)
            case _:
                pass
    return frozenset(written)


def reads(expr: Expr) -> frozenset[str]:
    """Scalars and arrays an expression reads."""
    names: set[str] = set()
    for node in walk(expr):
        if isinstance(node, Name):
            names.add(node.name)
        elif isinstance(node, Load):
            names.add(node.array)
    return frozenset(names)
