"""What the writers of all languages share: the source they get, and how they walk statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.dependence import Verdict
from hpcagent_bench.translators.backends.naming import Names
from hpcagent_bench.translators.backends.signs import Signs, of_function
from hpcagent_bench.translators.rewriting import with_bodies

INDENT = "    "


@dataclass(frozen=True)
class Source:
    """One kernel in its typed form and the loop that shall run parallel, if any."""

    kernel: Kernel
    function: ir.Function
    datatype: str
    parallel: Verdict | None = None

    @property
    def title(self) -> str:
        """What the comment at the top says."""
        return f"{self.kernel.name}: from {self.kernel.numpy_source.name}"

    @property
    def signs(self) -> Signs:
        """Lowest values of the scalar arguments: sizes start at one, knobs take what the manifest lists."""
        kernel = self.kernel
        least: dict[str, int] = {}
        for name, dtype in self.function.scalars.items():
            values = [config[name] for config in kernel.configs if name in config]
            if dtype != "int64":
                continue
            if name in kernel.size_symbols:
                least[name] = 1
            elif values:
                least[name] = min(int(value) for value in values)
        return of_function(self.function, least)


class Writer(ABC):
    """Writes the statements and expressions of one function or helper."""

    def __init__(self, function: ir.Function, names: Names, signs: Signs) -> None:
        self.function = function
        self.names = names
        self.signs = signs

    def block(self, body: tuple[ir.Stmt, ...], depth: int = 1) -> list[str]:
        """The lines of a body, indented."""
        return [f"{INDENT * depth}{line}" if line else "" for stmt in body for line in self.statement(stmt)]

    def statement(self, stmt: ir.Stmt) -> list[str]:
        match stmt:
            case ir.Assign():
                return self.assign(stmt)
            case ir.Store():
                return self.store(stmt)
            case ir.For():
                return self.loop(stmt)
            case ir.While():
                return self.repeat(stmt)
            case ir.If():
                return self.branch(stmt)
            case ir.Allocate():
                return self.allocate(stmt)
            case ir.Jump():
                return self.jump(stmt)
            case ir.Return():
                return self.leave(stmt)

    def inside(self, loop: ir.For) -> list[str]:
        """The body of a loop, with what is known of its index."""
        outer = self.signs
        self.signs = outer.within(loop)
        lines = self.block(loop.body)
        self.signs = outer
        return lines

    def text(self, expr: ir.Expr, least: int = 0) -> str:
        """The expression, in parentheses when it binds less tightly than ``least``."""
        written, precedence = self.render(expr)
        return written if precedence >= least else f"({written})"

    def listed(self, exprs: Iterable[ir.Expr]) -> str:
        return ", ".join(self.text(expr) for expr in exprs)

    @abstractmethod
    def render(self, expr: ir.Expr) -> tuple[str, int]: ...
    @abstractmethod
    def assign(self, stmt: ir.Assign) -> list[str]: ...
    @abstractmethod
    def store(self, stmt: ir.Store) -> list[str]: ...
    @abstractmethod
    def loop(self, stmt: ir.For) -> list[str]: ...
    @abstractmethod
    def repeat(self, stmt: ir.While) -> list[str]: ...
    @abstractmethod
    def branch(self, stmt: ir.If) -> list[str]: ...
    @abstractmethod
    def allocate(self, stmt: ir.Allocate) -> list[str]: ...
    @abstractmethod
    def jump(self, stmt: ir.Jump) -> list[str]: ...
    @abstractmethod
    def leave(self, stmt: ir.Return) -> list[str]: ...


def wrapped_code(line: str, width: int = 110) -> list[str]:
    """A line of C in pieces of at most ``width`` columns, broken where the fewest brackets are open."""
    if line.startswith("#"):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2 * len(INDENT))
    pieces = []
    while len(line) > width and (cut := _break(line, len(indent) + width // 3, width)):
        pieces.append(line[:cut])
        line = indent + line[cut + 1 :]
    return [*pieces, line]


def _break(line: str, first: int, last: int) -> int | None:
    """The space to break at between two columns: after a comma before others, the last among equals."""
    depth, found = 0, []
    for column, character in enumerate(line[:last]):
        depth += (character in "([") - (character in ")]")
        if character == " " and column > first:
            found.append((depth, line[column - 1] != ",", -column))
    return -min(found)[2] if found else None


def elif_chain(stmt: ir.If) -> tuple[list[tuple[ir.Expr, tuple[ir.Stmt, ...]]], tuple[ir.Stmt, ...]]:
    """Tests and bodies of ``if ... elif ...``, and the body of the final ``else``."""
    chain = [(stmt.test, stmt.body)]
    rest = stmt.orelse
    while len(rest) == 1 and isinstance(rest[0], ir.If):
        chain.append((rest[0].test, rest[0].body))
        rest = rest[0].orelse
    return chain, rest


def in_place(stmt: ir.Assign | ir.Store) -> ir.Binary | None:
    """The operation of ``x += value`` where that is what a statement does, else None."""
    value = stmt.value
    if not isinstance(value, ir.Binary) or value.op not in ("+", "-", "*", "/"):
        return None
    match stmt, value.left:
        case ir.Assign(name=target), ir.Name(name=name) if name == target:
            return value
        case ir.Store(array=target, index=place), ir.Load(array=name, index=index):
            return value if (name, index) == (target, place) else None
        case _:
            return None


def read_once(stmt: ir.For, expr: ir.Expr) -> bool:
    """Whether a bound must be kept in a variable, because the body changes it or it costs a call."""
    if ir.reads(expr) & ir.assigned(stmt.body):
        return True
    return any(isinstance(node, (ir.Call, ir.Invoke)) for node in ir.walk(expr))


def is_simple(expr: ir.Expr) -> bool:
    """Whether an expression may be written twice without harm to the reader."""
    match expr:
        case ir.Name() | ir.Const():
            return True
        case ir.Load():
            return all(isinstance(axis, (ir.Name, ir.Const)) for axis in expr.index)
        case ir.Unary(op="-"):
            return isinstance(expr.operand, ir.Name)
        case _:
            return False


def as_function(helper: ir.Helper) -> ir.Function:
    """A helper as a function without arrays, so that the same writer serves both."""
    return ir.Function(helper.name, tuple(helper.params), {}, helper.params, helper.locals, helper.body)


def without_dead_locals(function: ir.Function) -> ir.Function:
    """The function without locals that nothing reads, whose assignments have no effect."""
    while True:
        used = _read(function.body)
        dead = function.locals.keys() - used
        if not dead:
            return function
        kept = {name: dtype for name, dtype in function.locals.items() if name not in dead}
        function = replace(function, locals=kept, body=_without(dead, function.body))


def _read(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    exprs = (expr for stmt in ir.statements(body) for expr in ir.expressions(stmt))
    return frozenset().union(*(ir.reads(expr) for expr in exprs))


def _without(dead: Iterable[str], body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    kept = (stmt for stmt in body if not (isinstance(stmt, ir.Assign) and stmt.name in dead))
    return tuple(with_bodies(stmt, lambda inner: _without(dead, inner)) for stmt in kept)
