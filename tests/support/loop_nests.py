"""Small loop nests: from Python text to the typed form without the front end, and a tracing interpreter.

Everything is an integer, arrays hold an element at any index (so that no subscript is out of range), and a
loop may be run in another order.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hpcagent_bench.translators import ir

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_RUN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "min": min,
    "max": max,
}


def parse(text: str, arrays: dict[str, int], local: Iterable[str] = ()) -> ir.Function:
    """A function over ``arrays`` (name to rank) and the sizes N and M; ``local`` ones are its own."""
    reader = _Reader(arrays)
    body = reader.block(ast.parse(text).body)
    shape = (ir.Name("N", "int64"), ir.Name("M", "int64"), ir.Name("N", "int64"))
    declared = {n: ir.Array(n, "int64", shape[:rank], n in set(local)) for n, rank in arrays.items()}
    locals_ = dict.fromkeys(sorted(reader.assigned), "int64")
    args = tuple(name for name in arrays if name not in set(local))
    return ir.Function("nest", (*args, "N", "M"), declared, {"N": "int64", "M": "int64"}, locals_, body)


class _Reader:
    def __init__(self, arrays: dict[str, int]) -> None:
        self.arrays = arrays
        self.assigned: set[str] = set()

    def block(self, nodes: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
        return tuple(self.statement(node) for node in nodes)

    def statement(self, node: ast.stmt) -> ir.Stmt:
        match node:
            case ast.For(target=ast.Name(id=var), iter=ast.Call(args=args)):
                bounds = [self.expr(arg) for arg in args]
                start = bounds[0] if len(bounds) > 1 else ir.Const(0, "int64")
                stop = bounds[1] if len(bounds) > 1 else bounds[0]
                step = bounds[2] if len(bounds) > 2 else ir.Const(1, "int64")
                down = isinstance(step, ir.Const) and step.value < 0
                return ir.For(var, start, stop, step, self.block(node.body), node.lineno, descending=down)
            case ast.While():
                return ir.While(self.expr(node.test), self.block(node.body), node.lineno)
            case ast.If():
                test = self.expr(node.test)
                return ir.If(test, self.block(node.body), self.block(node.orelse), node.lineno)
            case ast.Assign(targets=[target], value=value):
                return self.write(target, self.expr(value), node.lineno)
            case ast.AugAssign(target=target):
                old = ast.parse(ast.unparse(target), mode="eval").body
                value = ir.Binary(_BINARY[type(node.op)], self.expr(old), self.expr(node.value), "int64")
                return self.write(target, value, node.lineno)
            case ast.Break() | ast.Continue():
                return ir.Jump(type(node).__name__.lower(), node.lineno)
            case ast.Return():
                return ir.Return(None, node.lineno)
        raise NotImplementedError(ast.dump(node))

    def write(self, target: ast.expr, value: ir.Expr, line: int) -> ir.Stmt:
        if isinstance(target, ast.Name):
            self.assigned.add(target.id)
            return ir.Assign(target.id, value, line)
        load = self.expr(target)
        assert isinstance(load, ir.Load)
        return ir.Store(load.array, load.index, value, line)

    def expr(self, node: ast.expr) -> ir.Expr:
        match node:
            case ast.Constant(value=value):
                return ir.Const(value, "bool" if isinstance(value, bool) else "int64")
            case ast.Name(id=name):
                return ir.Name(name, "int64")
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                assert len(parts) == self.arrays[name]
                return ir.Load(name, tuple(self.expr(part) for part in parts), "int64")
            case ast.UnaryOp(op=ast.Not()):
                return ir.Unary("not", self.expr(node.operand), "bool")
            case ast.UnaryOp(op=ast.USub()):
                operand = self.expr(node.operand)
                if isinstance(operand, ir.Const):
                    return ir.Const(-operand.value, "int64")
                return ir.Unary("-", operand, "int64")
            case ast.BinOp():
                return ir.Binary(_BINARY[type(node.op)], self.expr(node.left), self.expr(node.right), "int64")
            case ast.Compare(ops=[op], comparators=[right]):
                return ir.Compare(_COMPARE[type(op)], self.expr(node.left), self.expr(right))
            case ast.BoolOp():
                op = "and" if isinstance(node.op, ast.And) else "or"
                return ir.Logical(op, tuple(self.expr(value) for value in node.values))
            case ast.IfExp():
                parts = (self.expr(node.test), self.expr(node.body), self.expr(node.orelse))
                return ir.Select(*parts, "int64")
            case ast.Call(func=ast.Name(id=name), args=args):
                return ir.Call(name, tuple(self.expr(arg) for arg in args), "int64")
        raise NotImplementedError(ast.dump(node))


class Jumped(Exception):
    """A break, continue or return on its way out."""


@dataclass
class Machine:
    """Runs a function; ``order`` permutes the iterations of a loop, ``begin`` is told where each begins.

    ``touched`` lists, for each run of a loop, per iteration what was read and stored: (array, index) pairs.
    """

    scalars: dict[str, Any]
    arrays: dict[str, dict[tuple[int, ...], int]]
    order: Callable[[ir.For, list[int]], list[int]] = lambda loop, values: values
    begin: Callable[[ir.For, Machine], None] = lambda loop, machine: None
    end: Callable[[ir.For, Machine], None] = lambda loop, machine: None
    open: list[list[tuple[set[Any], set[Any]]]] = field(default_factory=list)
    touched: list[tuple[ir.For, list[tuple[set[Any], set[Any]]]]] = field(default_factory=list)
    salt: dict[str, int] = field(default_factory=dict)
    fuel: int = 100_000

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            self.fuel -= 1
            if self.fuel < 0:
                raise TimeoutError
            match stmt:
                case ir.Assign():
                    self.scalars[stmt.name] = self.value(stmt.value)
                case ir.Store():
                    place = tuple(self.value(axis) for axis in stmt.index)
                    value = self.value(stmt.value)
                    for run in self.open:
                        run[-1][1].add((stmt.array, place))
                    self.arrays[stmt.array][place] = value
                case ir.If():
                    self.run(stmt.body if self.value(stmt.test) else stmt.orelse)
                case ir.For():
                    self.loop(stmt)
                case ir.While():
                    while self.value(stmt.test):
                        try:
                            self.run(stmt.body)
                        except Jumped as jump:
                            if self.leaves(jump):
                                break
                case ir.Jump():
                    raise Jumped(stmt.kind)
                case ir.Return():
                    raise Jumped("return")

    def loop(self, loop: ir.For) -> None:
        bounds = [self.value(bound) for bound in (loop.start, loop.stop, loop.step)]
        run: list[tuple[set[Any], set[Any]]] = []
        self.touched.append((loop, run))
        self.open.append(run)
        try:
            for index in self.order(loop, list(range(*bounds))):
                run.append((set(), set()))
                self.begin(loop, self)
                self.scalars[loop.var] = index
                try:
                    self.run(loop.body)
                except Jumped as jump:
                    if self.leaves(jump):
                        break
        finally:
            self.open.pop()
        self.end(loop, self)

    @staticmethod
    def leaves(jump: Jumped) -> bool:
        if jump.args[0] == "return":
            raise jump
        return jump.args[0] == "break"

    def element(self, array: str, place: tuple[int, ...]) -> int:
        if place in self.arrays[array]:
            return self.arrays[array][place]
        return initial(array, place) + self.salt.get(array, 0)

    def spoil(self, names: Iterable[str], rng: random.Random) -> None:
        """Make scalars, and all elements of arrays, something that nobody expects."""
        for name in names:
            if name in self.arrays:
                self.arrays[name], self.salt[name] = {}, rng.randrange(10**6)
            else:
                self.scalars[name] = rng.randrange(10**6)

    def value(self, expr: ir.Expr) -> Any:
        match expr:
            case ir.Const():
                return expr.value
            case ir.Name():
                return self.scalars.get(expr.name, 0)
            case ir.Load():
                place = tuple(self.value(axis) for axis in expr.index)
                for run in self.open:
                    run[-1][0].add((expr.array, place))
                return self.element(expr.array, place)
            case ir.Unary():
                operand = self.value(expr.operand)
                return not operand if expr.op == "not" else -operand
            case ir.Binary() | ir.Compare():
                return _RUN[expr.op](self.value(expr.left), self.value(expr.right))
            case ir.Call():
                return _RUN[expr.function](*(self.value(arg) for arg in expr.args))
            case ir.Select():
                return self.value(expr.then if self.value(expr.test) else expr.orelse)
            case ir.Logical():
                return (all if expr.op == "and" else any)(self.value(operand) for operand in expr.operands)
        raise NotImplementedError(expr)


def initial(array: str, place: tuple[int, ...]) -> int:
    """What an element holds before anything is stored: small, and different almost everywhere."""
    mixed = sum(ord(letter) for letter in array)
    for axis in place:
        mixed = (mixed * 31 + axis * 17 + 7) % 1009
    return mixed % 19 - 4
