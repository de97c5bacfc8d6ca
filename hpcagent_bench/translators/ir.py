"""The typed form of a NumPy reference: loops over scalars and array elements, nothing else.

Whole-array expressions, slices, reductions and the like are lowered to loops before they get here, so that
a back end sees elements only. Every expression carries the dtype it computes in, NumPy's (NEP 50): ``bool``,
an integer, ``float32``, ``float64``, ``complex64`` or ``complex128``. Storage formats without arithmetic of
their own (``float16``, ``bfloat16``, ``float8_*``, ``int4``) occur as element types of arrays only: a load
widens to ``computes_in``, a store rounds.

Conversions are explicit: the operands of Binary, Unary, Select and Call have the dtype of the node, those of
Compare have one dtype, the value of an Assign has its local's dtype and that of a Store ``computes_in`` of
its array. A back end may leave out a Cast that its language makes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_COMPUTES = {
    **dict.fromkeys(("float16", "bfloat16", "float8_e4m3", "float8_e5m2"), "float32"),
    "int4": "int8",
}


def computes_in(dtype: str) -> str:
    """The dtype that elements stored as ``dtype`` take part in arithmetic with."""
    return _COMPUTES.get(dtype, dtype)


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def is_complex(dtype: str) -> bool:
    return dtype.startswith("complex")


def is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


@dataclass(frozen=True)
class Const:
    value: int | float | bool | complex
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
class Cast:
    """The operand converted to another dtype as ``astype`` does: toward zero, integers modulo their width."""

    operand: Expr
    dtype: str


@dataclass(frozen=True)
class Unary:
    """``op`` is ``-``, ``~`` or ``not``; ``wraps`` as in Binary."""

    op: str
    operand: Expr
    dtype: str
    wraps: bool = False


@dataclass(frozen=True)
class Binary:
    """``op`` is one of + - * / // % ** & | ^ << >> (the bitwise ones on integers and bools alike).

    ``//`` and ``%`` round down as Python's do; on integers a zero divisor gives 0, as in NumPy. ``wraps``
    says that the operation is on integers that come from data and overflows modulo 2^bits; without it the
    operands are indices and sizes, which cannot overflow.
    """

    op: str
    left: Expr
    right: Expr
    dtype: str
    wraps: bool = False


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
    """A mathematical function by its NumPy name; ``min`` and ``max`` are Python's, which pass a NaN of the
    first operand on only; ``real``, ``imag`` and ``abs`` of a complex operand give a float."""

    function: str
    args: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True)
class Invoke:
    """A helper function of the reference, by value, scalars in and one scalar out."""

    helper: str
    args: tuple[Expr, ...]
    dtype: str


Expr = Const | Name | Load | Cast | Unary | Binary | Compare | Logical | Select | Call | Invoke


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
    """``for var in range(start, stop, step)``; ``var`` is int64; bounds and step are read once.

    ``descending`` is the sign of ``step``, which may be an expression of scalar arguments but never zero.
    ``implied`` marks a loop that whole-array syntax stands for, not one that the reference spells out.
    """

    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    line: int
    descending: bool = False
    implied: bool = False

    @property
    def unit(self) -> bool:
        """Whether the index goes up by one."""
        return isinstance(self.step, Const) and self.step.value == 1


@dataclass(frozen=True)
class While:
    test: Expr
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
    """A local array comes into being, zeroed or not; its shape is in ``Function.arrays``.

    It stands at the top level of the body, once per array.
    """

    array: str
    zeroed: bool
    line: int


@dataclass(frozen=True)
class Jump:
    """``kind`` is ``break`` or ``continue``."""

    kind: str
    line: int


@dataclass(frozen=True)
class Return:
    """The value of a helper function, or (without one) the end of the kernel."""

    value: Expr | None
    line: int


Stmt = Assign | Store | For | While | If | Allocate | Jump | Return


@dataclass(frozen=True)
class Array:
    """``dtype`` is that of its elements in memory; ``shape`` one expression per axis."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    local: bool


@dataclass(frozen=True)
class Helper:
    """A function the reference calls on scalars: parameters and locals with their dtypes, result, body."""

    name: str
    params: dict[str, str]
    locals: dict[str, str]
    dtype: str
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Function:
    """One kernel: arguments in the reference's order; arrays, scalars and locals with their dtypes; body.

    ``helpers`` come in an order in which each is defined before it is used.
    """

    name: str
    arg_order: tuple[str, ...]
    arrays: dict[str, Array]
    scalars: dict[str, str]
    locals: dict[str, str]
    body: tuple[Stmt, ...]
    helpers: tuple[Helper, ...] = ()


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Const() | Name():
            return ()
        case Load():
            return expr.index
        case Unary() | Cast():
            return (expr.operand,)
        case Binary() | Compare():
            return (expr.left, expr.right)
        case Logical():
            return expr.operands
        case Select():
            return (expr.test, expr.then, expr.orelse)
        case Call() | Invoke():
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
            return (stmt.start, stmt.stop, stmt.step)
        case If() | While():
            return (stmt.test,)
        case Return():
            return () if stmt.value is None else (stmt.value,)
        case Allocate() | Jump():
            return ()


def nested(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a loop or a branch."""
    match stmt:
        case For() | While():
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
