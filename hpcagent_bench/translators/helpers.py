"""Functions of a reference's module that it calls on scalars: one typed helper for each mix of dtypes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpcagent_bench.translators import ir, promotion
from hpcagent_bench.translators.promotion import Operand
from hpcagent_bench.translators.reading import text
from hpcagent_bench.translators.statements import StatementReader

Signature = tuple[str, tuple[tuple[str, bool], ...]]


@dataclass
class Helpers:
    """The helpers that calls have asked for so far, in an order in which each is defined before its use."""

    functions: dict[str, ast.FunctionDef]
    made: list[ir.Helper] = field(default_factory=list)
    results: dict[Signature, Operand] = field(default_factory=dict)  # an Invoke without arguments
    open: list[str] = field(default_factory=list)  # those being read: a call of one of them is recursion

    def restart(self) -> None:
        self.made.clear()
        self.results.clear()


class FunctionReader(StatementReader):
    """A reader that knows the reference's own functions."""

    helpers: Helpers

    def invoke(self, node: ast.Call, name: str) -> Operand | None:
        if name not in self.helpers.functions:
            return None
        definition = self.helpers.functions[name]
        arguments = self.arguments(node)
        if len(arguments) != len(definition.args.args):
            raise self.refusal(node, f"'{text(node)}' with {len(arguments)} arguments")
        signature = name, tuple((operand.dtype, operand.weak) for operand in arguments)
        if signature not in self.helpers.results:
            if name in self.helpers.open:
                raise self.refusal(node, f"'{text(node)}', a recursive call,")
            self.helpers.open.append(name)
            self.helpers.results[signature] = self.specialise(definition, signature)
            self.helpers.open.pop()
        result = self.helpers.results[signature]
        assert isinstance(result.expr, ir.Invoke)
        expr = ir.Invoke(result.expr.helper, tuple(operand.expr for operand in arguments), result.dtype)
        return Operand(expr, result.weak)

    def specialise(self, definition: ast.FunctionDef, signature: Signature) -> Operand:
        """Read the helper for arguments of these dtypes."""
        plain_parameters(self, definition)
        if not _returns(definition.body):
            raise self.refusal(definition, f"'{definition.name}', which may end without a return,")
        name = definition.name
        if any(helper.name == name for helper in self.helpers.made):
            name = self.fresh("_".join([name, *dict.fromkeys(dtype for dtype, _ in signature[1])]))
        reader = _HelperReader(self.kernel, self.datatype)
        reader.helpers = self.helpers
        reader.parameters(definition, signature)
        body = reader.settle(definition.body)
        assert reader.result is not None
        dtype, weak = reader.result
        locals_ = {local: kind for local, (kind, _) in reader.locals.items()}
        self.helpers.made.append(ir.Helper(name, reader.params, locals_, dtype, body))
        return Operand(ir.Invoke(name, (), dtype), weak)


class _HelperReader(FunctionReader):
    """The body of a helper: scalars only, and a value to return."""

    def parameters(self, definition: ast.FunctionDef, signature: Signature) -> None:
        self.taken = names(definition)
        self.params: dict[str, str] = {}
        self.result: tuple[str, bool] | None = None
        self.changed: list[tuple[str, Operand]] = []
        assigned = {
            n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for parameter, (dtype, weak) in zip(definition.args.args, signature[1], strict=True):
            self.usable(parameter.arg, parameter)
            name = parameter.arg
            if name in assigned:  # a parameter that changes is a local with the argument as its first value
                name = self.fresh(f"{name}_given")
                self.changed.append((parameter.arg, Operand(ir.Name(name, dtype), weak)))
            else:
                self.scalars[name] = Operand(ir.Name(name, dtype), weak)
            self.params[name] = dtype

    def opening(self, nodes: list[ast.stmt]) -> None:
        for name, value in self.changed:
            self.define(name, value, nodes[0])

    def end(self, node: ast.Return) -> None:
        if node.value is None:
            raise self.refusal(node, "a helper that returns nothing")
        value = self.expr(node.value)
        if self.result is None:
            self.result = value.dtype, value.weak
        else:
            dtype, weak = self.result
            self.result = promotion.join(Operand(ir.Name("", dtype), weak), value)
        self.emit(ir.Return(promotion.convert(value, self.result[0]), node.lineno))


def names(definition: ast.FunctionDef) -> set[str]:
    """Every name that occurs in a function."""
    return set(_names(definition))


def _names(definition: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def plain_parameters(reader: StatementReader, definition: ast.FunctionDef) -> None:
    args = definition.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
        raise reader.refusal(definition, f"'{definition.name}' with parameters that are no plain names")
    if definition.decorator_list:
        raise reader.refusal(definition.decorator_list[0], "a decorator")


def _returns(body: list[ast.stmt]) -> bool:
    """Whether every path through a body ends in a return."""
    match body[-1]:
        case ast.Return():
            return True
        case ast.If(body=then, orelse=orelse):
            return bool(orelse) and _returns(then) and _returns(orelse)
        case _:
            return False
