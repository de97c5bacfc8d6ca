"""What every loop of a function touches: element accesses whose subscripts are polynomials of named values.

One walk through the function follows integer scalars as in static single assignment. A value that is computed
from others by integer arithmetic is a polynomial of theirs; any other gets a name of its own where it comes
into being: a scalar after a branch or at the start of an iteration, an element of an array. Values are
numbered in order, so that all from a loop's first number on belong to one iteration of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.analysis.polynomials import Polynomial
from hpcagent_bench.translators.analysis.reductions import update_of_element


@dataclass(frozen=True)
class Value:
    """``number`` orders values by where they come into being; none of ``facts`` is ever negative."""

    number: int
    facts: tuple[Polynomial, ...] = ()
    opaque: bool = True


@dataclass(frozen=True)
class Access:
    """A load or store: ``index`` in values, ``written`` as in the source, with the counters of the loops
    around it, what the branches around it say (none negative), and the operator of ``x[i] = x[i] + ...``.

    ``branches`` is how many conditions it stands under, those of jumps before it included.
    """

    array: str
    index: tuple[Polynomial, ...]
    store: bool
    line: int
    written: tuple[ir.Expr, ...]
    counters: tuple[str, ...]
    guards: tuple[Polynomial, ...]
    branches: int
    update: str | None


@dataclass
class Site:
    """A loop with the sites of the loops around it, outermost first, and all accesses inside it.

    ``counter`` names the value that counts its iterations from 0; values from number ``first`` on may differ
    between iterations. ``branches`` is how many conditions the loop stands under.
    """

    loop: ir.For | ir.While
    counter: str
    first: int
    around: tuple[Site, ...]
    start: Polynomial
    stop: Polynomial
    branches: int
    accesses: list[Access] = field(default_factory=list)


@dataclass(frozen=True)
class Survey:
    """All loops and accesses of a function in program order, and the values these mention."""

    sites: tuple[Site, ...]
    accesses: tuple[Access, ...]
    values: dict[str, Value]


def survey(function: ir.Function) -> Survey:
    """Walk through ``function``; helpers see scalars only, so they touch nothing."""
    walk = _Walk(function)
    walk.block(function.body)
    return Survey(tuple(walk.sites), tuple(walk.accesses), walk.values)


class _Walk:
    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.values: dict[str, Value] = {}
        self.current: dict[str, Polynomial] = {}  # what locals and loop indices hold at this point
        self.sites: list[Site] = []
        self.accesses: list[Access] = []
        self.open: list[Site] = []
        self.guards: list[Polynomial] = []
        self.branches = 0
        self.number = 0
        self.constant_arrays = function.arrays.keys() - ir.assigned(function.body)
        for name in function.scalars:
            self.values[name] = Value(0, opaque=False)
        for array in function.arrays.values():
            for axis in array.shape:  # no size is below 1
                if isinstance(axis, ir.Name) and not array.local:
                    self.values[axis.name] = Value(0, (Polynomial.name(axis.name) - 1,), opaque=False)

    # ---- values

    def fresh(self, stem: str, facts: tuple[Polynomial, ...] = (), opaque: bool = True) -> Polynomial:
        self.number += 1
        name = f"{stem}#{self.number}"
        self.values[name] = Value(self.number, facts, opaque)
        return Polynomial.name(name)

    def derived(self, name: str, parts: Iterable[Polynomial], *facts: Polynomial) -> Polynomial:
        """A value that is the same whenever its parts are."""
        number = max((self.values[part].number for poly in parts for part in poly.names), default=0)
        self.values.setdefault(name, Value(number, facts))
        return Polynomial.name(name)

    def read(self, expr: ir.Expr) -> Polynomial:
        """An integer expression as a polynomial of values."""
        match expr:
            case ir.Const() if isinstance(expr.value, int):
                return Polynomial.constant(int(expr.value))
            case ir.Name() if expr.name in self.function.scalars:
                return Polynomial.name(expr.name)
            case ir.Name() if expr.name in self.current:
                return self.current[expr.name]
            case ir.Cast() if np.can_cast(expr.operand.dtype, expr.dtype) and ir.is_integer(expr.dtype):
                return self.read(expr.operand)
            case ir.Load() if expr.array in self.constant_arrays:
                index = [self.read(axis) for axis in expr.index]
                return self.derived(f"{expr.array}[{','.join(axis.text for axis in index)}]", index)
            case ir.Unary(op="-", wraps=False):
                return -self.read(expr.operand)
            case ir.Binary():
                return self.binary(expr, self.read(expr.left), self.read(expr.right))
            case ir.Call(function="min" | "max" | "minimum" | "maximum"):
                parts = [self.read(arg) for arg in expr.args]
                name = f"{expr.function[:3]}({','.join(part.text for part in parts)})"
                value, sign = Polynomial.name(name), -1 if expr.function.startswith("min") else 1
                return self.derived(name, parts, *((value - part) * sign for part in parts))
            case _:
                return self.fresh("value")

    def binary(self, expr: ir.Binary, left: Polynomial, right: Polynomial) -> Polynomial:
        if not expr.wraps and expr.op in ("+", "-", "*"):
            return left + right if expr.op == "+" else left - right if expr.op == "-" else left * right
        divisor = right.known
        if not expr.wraps and expr.op in ("//", "%") and divisor is not None and divisor > 0:
            name = f"({left.text})//{divisor}"
            rest = left - Polynomial.name(name) * divisor
            quotient = self.derived(name, (left,), rest, -rest + (divisor - 1))
            return quotient if expr.op == "//" else rest
        return self.derived(f"({left.text}){expr.op}({right.text}):{expr.dtype}", (left, right))

    # ---- statements

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        depth, branches = len(self.guards), self.branches
        for stmt in body:
            self.statement(stmt)
            if isinstance(stmt, ir.If):
                self.branches += any(isinstance(s, (ir.Jump, ir.Return)) for s in ir.statements((stmt,)))
                if stmt.body and not stmt.orelse and isinstance(stmt.body[-1], (ir.Jump, ir.Return)):
                    self.guards += self.fails(stmt.test)
        del self.guards[depth:]
        self.branches = branches

    def statement(self, stmt: ir.Stmt) -> None:
        update = update_of_element(stmt) if isinstance(stmt, ir.Store) else None
        for expr in ir.expressions(stmt):
            self.loads(expr, stmt.line, update)
        match stmt:
            case ir.Assign():
                integer = (
                    ir.is_integer(self.function.locals.get(stmt.name, "")) and stmt.value.dtype != "bool"
                )
                self.current[stmt.name] = self.read(stmt.value) if integer else self.fresh(stmt.name)
            case ir.Store():
                self.record(stmt.array, stmt.index, True, stmt.line, update)
            case ir.For() | ir.While():
                self.loop(stmt)
            case ir.If():
                self.branch(stmt)

    def loop(self, loop: ir.For | ir.While) -> None:
        changed = ir.assigned(loop.body) & self.function.locals.keys()
        start = stop = Polynomial.constant(0)
        if isinstance(loop, ir.For):
            start, stop = self.read(loop.start), self.read(loop.stop)
        first = self.number + 1
        counter = f"{loop.var if isinstance(loop, ir.For) else 'while'}#{first}"
        count = Polynomial.name(counter)
        facts: tuple[Polynomial, ...] = (count,)
        if isinstance(loop, ir.For):
            step = self.read(loop.step)
            sign = -1 if loop.descending else 1
            index = start + step * count
            facts = (count, (stop - index) * sign - 1, step * sign - 1)
            self.current[loop.var] = index
        self.number += 1
        self.values[counter] = Value(first, facts, opaque=False)
        site = Site(loop, counter, first, tuple(self.open), start, stop, self.branches)
        self.sites.append(site)
        self.open.append(site)
        self.forget(changed)
        depth = len(self.guards)
        if isinstance(loop, ir.While):
            self.guards += self.holds(loop.test)
        self.branches += isinstance(loop, ir.While)
        self.block(loop.body)
        self.branches -= isinstance(loop, ir.While)
        del self.guards[depth:]
        self.open.pop()
        self.forget(changed)

    def branch(self, stmt: ir.If) -> None:
        before, depth = dict(self.current), len(self.guards)
        self.branches += 1
        self.guards += self.holds(stmt.test)
        self.block(stmt.body)
        del self.guards[depth:]
        then, self.current = self.current, before
        self.guards += self.fails(stmt.test)
        self.block(stmt.orelse)
        del self.guards[depth:]
        self.branches -= 1
        self.forget({name for name in then if self.current.get(name) != then[name]})

    def forget(self, names: Iterable[str]) -> None:
        """From here on the names hold values nothing is known of."""
        for name in sorted(names):
            self.current[name] = self.fresh(name)

    # ---- accesses

    def loads(self, expr: ir.Expr, line: int, update: tuple[str, ir.Load] | None) -> None:
        if isinstance(expr, ir.Load):
            mine = update if update is not None and update[1] is expr else None
            self.record(expr.array, expr.index, False, line, mine)
        if isinstance(expr, ir.Select):
            self.loads(expr.test, line, update)
            self.guarded(self.holds(expr.test), expr.then, line, update)
            self.guarded(self.fails(expr.test), expr.orelse, line, update)
        elif isinstance(expr, ir.Logical):
            self.loads(expr.operands[0], line, update)
            told: list[Polynomial] = []
            for before, operand in itertools.pairwise(expr.operands):
                told += self.holds(before) if expr.op == "and" else self.fails(before)
                self.guarded(told, operand, line, update)
        else:
            for child in ir.children(expr):
                self.loads(child, line, update)

    def guarded(
        self, facts: list[Polynomial], expr: ir.Expr, line: int, update: tuple[str, ir.Load] | None
    ) -> None:
        """The loads of an operand that is evaluated where the facts hold only."""
        depth = len(self.guards)
        self.guards += facts
        self.branches += 1
        self.loads(expr, line, update)
        self.branches -= 1
        del self.guards[depth:]

    def record(
        self,
        array: str,
        index: tuple[ir.Expr, ...],
        store: bool,
        line: int,
        update: tuple[str, ir.Load] | None,
    ) -> None:
        counters = tuple(site.counter for site in self.open)
        values = tuple(self.read(axis) for axis in index)
        operator = None if update is None else update[0]
        guards = tuple(self.guards)
        access = Access(array, values, store, line, index, counters, guards, self.branches, operator)
        self.accesses.append(access)
        for site in self.open:
            site.accesses.append(access)

    # ---- conditions

    def holds(self, test: ir.Expr) -> list[Polynomial]:
        """What is not negative where ``test`` is true."""
        match test:
            case ir.Logical(op="and"):
                return [fact for operand in test.operands for fact in self.holds(operand)]
            case ir.Unary(op="not"):
                return self.fails(test.operand)
            case ir.Compare() if ir.is_integer(test.left.dtype):
                return list(_compared(test.op, self.read(test.right) - self.read(test.left)))
            case _:
                return []

    def fails(self, test: ir.Expr) -> list[Polynomial]:
        """What is not negative where ``test`` is false."""
        match test:
            case ir.Logical(op="or"):
                return [fact for operand in test.operands for fact in self.fails(operand)]
            case ir.Unary(op="not"):
                return self.holds(test.operand)
            case ir.Compare() if ir.is_integer(test.left.dtype):
                return list(_compared(_OPPOSITE[test.op], self.read(test.right) - self.read(test.left)))
            case _:
                return []


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _compared(op: str, gap: Polynomial) -> Iterator[Polynomial]:
    """What ``left op right`` says about ``gap``, right minus left."""
    if op in ("<", "<=", "=="):
        yield gap - 1 if op == "<" else gap
    if op in (">", ">=", "=="):
        yield -gap - 1 if op == ">" else -gap


def names_of(access: Access, found: Survey) -> set[str]:
    """Every value the access depends on, those that facts about others mention included."""
    names: set[str] = set()
    more = set(access.counters).union(*(poly.names for poly in (*access.index, *access.guards)))
    while more:
        names |= more
        facts = itertools.chain.from_iterable(found.values[name].facts for name in more)
        more = set().union(*(fact.names for fact in facts)) - names
    return names
