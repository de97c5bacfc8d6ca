"""Runs the typed form itself, element by element with NumPy scalars: what every back end has to compute."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from hpcagent_bench.translators import ir

_BINARY = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod, "**": operator.pow, "&": operator.and_},
    **{"|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift},
}
_COMPARE = {
    **{"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal},
    **{"==": np.equal, "!=": np.not_equal},
}


class _Jump(Exception):
    pass


class _Return(Exception):
    pass


def run(function: ir.Function, arguments: Mapping[str, Any]) -> None:
    """Execute on arrays and scalars by name; arrays change in place. Indices must lie inside their arrays."""
    machine = _Machine(function)
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            machine.arrays[name] = value
        else:
            machine.values[name] = np.dtype(function.scalars[name]).type(value)
    with np.errstate(all="ignore"):
        with contextlib.suppress(_Return):
            machine.block(function.body)


class _Machine:
    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.arrays: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        self.dtypes = {**function.scalars, **function.locals}

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Assign():
                assert stmt.value.dtype == self.dtypes[stmt.name], stmt
                self.values[stmt.name] = self.value(stmt.value)
            case ir.Store():
                array = self.function.arrays[stmt.array]
                assert stmt.value.dtype == ir.computes_in(array.dtype), stmt
                self.arrays[stmt.array][self.index(stmt.array, stmt.index)] = self.value(stmt.value)
            case ir.For():
                self.loop(stmt)
            case ir.While():
                while self.value(stmt.test):
                    if self.once(stmt.body):
                        break
            case ir.If():
                self.block(stmt.body if self.value(stmt.test) else stmt.orelse)
            case ir.Allocate():
                array = self.function.arrays[stmt.array]
                shape = tuple(max(0, int(self.value(axis))) for axis in array.shape)
                assert stmt.array not in self.arrays, "allocated twice"
                rubbish = np.full(shape, 77, dtype=array.dtype)
                self.arrays[stmt.array] = np.zeros(shape, dtype=array.dtype) if stmt.zeroed else rubbish
            case ir.Jump():
                raise _Jump(stmt.kind)
            case ir.Return():
                raise _Return(None if stmt.value is None else self.value(stmt.value))

    def loop(self, stmt: ir.For) -> None:
        start, stop, step = (int(self.value(bound)) for bound in (stmt.start, stmt.stop, stmt.step))
        assert (step < 0) == stmt.descending
        for i in range(start, stop, step):
            self.values[stmt.var] = np.int64(i)
            if self.once(stmt.body):
                break

    def once(self, body: tuple[ir.Stmt, ...]) -> bool:
        """One iteration; whether it ended in a break."""
        try:
            self.block(body)
        except _Jump as jump:
            return jump.args[0] == "break"
        return False

    def index(self, array: str, index: tuple[ir.Expr, ...]) -> tuple[int, ...]:
        assert all(axis.dtype == "int64" for axis in index)
        at = tuple(int(self.value(axis)) for axis in index)
        shape = self.arrays[array].shape
        assert len(at) == len(shape), array
        assert all(0 <= i < n for i, n in zip(at, shape, strict=True)), f"{array}{at} outside {shape}"
        return at

    def value(self, expr: ir.Expr) -> Any:
        result = self.compute(expr)
        kind = np.dtype(expr.dtype).type
        assert isinstance(result, kind), f"{expr} gives {type(result)}"
        return result

    def operands(self, expr: ir.Expr, dtype: str) -> list[Any]:
        for child in ir.children(expr):
            assert child.dtype == dtype, f"{expr}: {child.dtype}"
        return [self.value(child) for child in ir.children(expr)]

    def compute(self, expr: ir.Expr) -> Any:
        make = np.dtype(expr.dtype).type
        match expr:
            case ir.Const():
                return make(expr.value)
            case ir.Name():
                return self.values[expr.name]
            case ir.Load():
                return make(self.arrays[expr.array][self.index(expr.array, expr.index)])
            case ir.Cast():
                return self.value(expr.operand).astype(expr.dtype)
            case ir.Unary(op="not"):
                return np.logical_not(*self.operands(expr, "bool"))
            case ir.Unary():
                return {"-": np.negative, "~": np.invert}[expr.op](*self.operands(expr, expr.dtype))
            case ir.Binary(op="/") if ir.is_integer(expr.left.dtype):
                raise AssertionError("'/' of integers")
            case ir.Binary():
                return make(_BINARY[expr.op](*self.operands(expr, expr.dtype)))
            case ir.Compare():
                assert expr.left.dtype == expr.right.dtype, expr
                return _COMPARE[expr.op](self.value(expr.left), self.value(expr.right))
            case ir.Logical():
                values = (self.value(operand) for operand in expr.operands)
                return np.bool_(all(values) if expr.op == "and" else any(values))
            case ir.Select():
                assert expr.then.dtype == expr.orelse.dtype == expr.dtype, expr
                return self.value(expr.then if self.value(expr.test) else expr.orelse)
            case ir.Call():
                return make(self.call(expr))
            case ir.Invoke():
                return self.invoke(expr)

    def call(self, expr: ir.Call) -> Any:
        args = [self.value(arg) for arg in expr.args]
        if expr.function in ("min", "max"):
            return (min if expr.function == "min" else max)(args)
        if not (expr.function in ("abs", "real", "imag") and ir.is_complex(expr.args[0].dtype)):
            assert all(arg.dtype == expr.dtype for arg in expr.args), expr
        return getattr(np, expr.function)(*args)

    def invoke(self, expr: ir.Invoke) -> Any:
        helper = next(helper for helper in self.function.helpers if helper.name == expr.helper)
        inner = _Machine(self.function)
        inner.dtypes = {**helper.params, **helper.locals}
        for (name, dtype), arg in zip(helper.params.items(), expr.args, strict=True):
            assert arg.dtype == dtype
            inner.values[name] = self.value(arg)
        try:
            inner.block(helper.body)
        except _Return as result:
            return result.args[0]
        raise AssertionError(f"{helper.name} returns nothing")
