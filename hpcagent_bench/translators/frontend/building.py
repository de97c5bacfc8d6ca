"""The block under construction: names, locals, implied loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain.abi import c_name
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import promotion
from hpcagent_bench.translators.frontend.arrays import Array, Axis, Index
from hpcagent_bench.translators.frontend.knowledge import Knowledge, Range
from hpcagent_bench.translators.frontend.promotion import Operand
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, minus, plus

_INDICES = "ijklmnopqrst"


@dataclass
class Level:
    """An implied loop that is open and the block inside it."""

    var: str
    body: list[ir.Stmt]
    ready: dict[tuple[int, Index], Operand] = field(default_factory=dict)  # reductions computed in this block


@dataclass
class Builder:
    """Writes statements: keeps the block under construction and everything declared so far.

    ``locals`` maps a local scalar to its dtype and to whether it only ever holds Python's own numbers; it is
    right once all assignments have been seen.
    """

    kernel: Kernel
    datatype: str
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    scalars: dict[str, Operand] = field(default_factory=dict)
    locals: dict[str, tuple[str, bool]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)  # locals with an assignment above this point of the text
    given: dict[str, list[ir.Expr]] = field(default_factory=dict)  # every value each local is assigned
    loops: list[str] = field(default_factory=list)  # indices of the spelled-out loops around this point
    taken: set[str] = field(default_factory=set)  # names in use anywhere in the function
    indices: set[str] = field(default_factory=set)  # those of them that are only ever indices of loops
    known: Knowledge = field(default_factory=Knowledge)
    out: list[ir.Stmt] = field(default_factory=list)
    nest: list[Level] = field(default_factory=list)  # implied loops around this point
    ahead: list[ir.Stmt] = field(default_factory=list)  # allocations at the top of the function
    made: dict[str, str] = field(default_factory=dict)  # names made up so far, by what they should be called
    naming: str = ""  # the name that a listed array is about to get
    line: int = 1
    depth: int = 0  # spelled-out loops and branches around this point

    def __post_init__(self) -> None:
        self.base: list[ir.Stmt] = self.out
        self.wholes: dict[int, tuple[object, Array]] = {}
        self.making: set[int] = set()

    def emit(self, stmt: ir.Stmt) -> None:
        self.out.append(stmt)

    # ---- names

    def fresh(self, wanted: str) -> str:
        """A name that occurs nowhere else in the function."""
        name, count = wanted, 1
        while name in self.taken or c_name(name) != name:
            count += 1
            name = f"{wanted}{count}"
        self.taken.add(name)
        self.made[name] = wanted
        return name

    def result_name(self, wanted: str) -> str:
        """The local for a reduction: the variable that it is assigned to, outside all implied loops."""
        if (
            self.naming
            and not self.nest
            and self.naming not in self.scalars
            and self.naming not in self.loops
        ):
            name, self.naming = self.naming, ""
            return name
        return self.fresh(wanted)

    def index(self) -> str:
        """A name for the index of an implied loop."""
        open_ = {*self.loops, *(level.var for level in self.nest)}
        for letter in _INDICES:
            if letter not in open_ and (letter not in self.taken or letter in self.indices):
                return letter
        return self.fresh("i")

    def define(self, name: str, value: Operand) -> Operand:
        """A local takes a value; its dtype is what holds all values it is ever given."""
        before = self.locals.get(name)
        if before is None:
            self.locals[name] = value.dtype, value.weak
        else:
            self.locals[name] = promotion.join(Operand(ir.Name(name, before[0]), before[1]), value)
        dtype, weak = self.locals[name]
        self.assigned.add(name)
        converted = promotion.convert(value, dtype)
        self.given.setdefault(name, []).append(converted)
        self.emit(ir.Assign(name, converted, self.line))
        return Operand(ir.Name(name, dtype), weak)

    def keep(self, wanted: str, value: Operand) -> Operand:
        """The value in a local of its own."""
        return self.define(self.fresh(wanted), value)

    # ---- loops

    def over(self, axes: Sequence[Axis], write: Callable[[Index], None], first: int = 0) -> None:
        """Loops over all elements of a shape, last axis innermost; ``first`` leaves out the lowest indices of
        the first axis."""
        if not axes:
            write(())
            return
        axis = axes[0]
        if axis.single and not first:
            self.over(axes[1:], lambda rest: write((ZERO, *rest)))
            return
        var = self.index()
        start, stop = plus(axis.origin, ir.Const(first, "int64")), plus(axis.origin, axis.extent)
        position = minus(ir.Name(var, "int64"), axis.origin)
        level = Level(var, [])
        if not self.nest:
            self.base = self.out
        self.nest.append(level)
        self.known.ranges.append(Range(var, start, stop))
        outer, self.out = self.out, level.body
        self.over(axes[1:], lambda rest: write((position, *rest)))
        self.out = outer
        self.known.ranges.pop()
        self.nest.pop()
        self.emit(ir.For(var, start, stop, ONE, tuple(level.body), self.line, implied=True))

    @contextmanager
    def statement_block(self) -> Iterator[list[ir.Stmt]]:
        """Statements for one assignment, collected apart until they are found to be right."""
        outer = self.out, self.base, self.nest, self.wholes
        self.out, self.nest, self.wholes = [], [], {}
        try:
            yield self.out
        finally:
            self.out, self.base, self.nest, self.wholes = outer

    @contextmanager
    def at_level(self, level: int) -> Iterator[None]:
        """Write into the block inside the outermost ``level`` implied loops."""
        outer = self.out, self.nest, self.known.ranges
        inner = len(self.nest) - level
        if inner:
            self.out = self.nest[level - 1].body if level else self.base
        self.nest = self.nest[:level]
        self.known.ranges = self.known.ranges[: len(self.known.ranges) - inner]
        yield
        self.out, self.nest, self.known.ranges = outer

    @contextmanager
    def branch(self, test: ir.Expr) -> Iterator[None]:
        """Statements under a condition."""
        outer, self.out = self.out, []
        ready = [dict(level.ready) for level in self.nest]
        yield
        body, self.out = tuple(self.out), outer
        for level, before in zip(self.nest, ready, strict=True):  # what was computed here may not be there
            level.ready = before
        self.emit(ir.If(test, body, (), self.line))
