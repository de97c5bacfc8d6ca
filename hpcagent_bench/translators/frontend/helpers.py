"""Functions of a reference's module: on scalars a typed helper for each mix of dtypes, else read in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import promotion
from hpcagent_bench.translators.frontend.arrays import Array, Value
from hpcagent_bench.translators.frontend.inlining import Renaming, returned, scalars_only
from hpcagent_bench.translators.frontend.promotion import Operand
from hpcagent_bench.translators.frontend.reading import text
from hpcagent_bench.translators.frontend.statements import StatementReader

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

    def invoke(self, node: ast.Call, name: str) -> Value | None:
        if name not in self.helpers.functions:
            return None
        results = self.results(node, name)
        if len(results) != 1:
            raise self.refusal(node, f"'{text(node)}' with {len(results)} results")
        return results[0]

    def several(self, node: ast.expr, count: int) -> list[Value]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            results = self.results(node, node.func.id) if node.func.id in self.helpers.functions else []
            if len(results) == count:
                return results
        return super().several(node, count)

    def procedure(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name) or node.func.id not in self.helpers.functions:
            return super().procedure(node)
        self.results(node, node.func.id)
        return None

    def results(self, node: ast.Call, name: str) -> list[Value]:
        """What a call of the reference's function returns."""
        definition = self.helpers.functions[name]
        plain_parameters(self, definition)
        if node.keywords or len(node.args) != len(definition.args.args):
            raise self.refusal(node, f"'{text(node)}' with these arguments")
        if name in self.helpers.open:
            raise self.refusal(node, f"'{text(node)}', a recursive call,")
        values = [self.read(arg) for arg in node.args]
        scalars = [value for value in values if isinstance(value, Operand)]
        self.helpers.open.append(name)
        line = self.line
        if len(scalars) == len(values) and scalars_only(definition):
            results: list[Value] = [self.helper(definition, name, scalars)]
        else:
            results = self.inline(definition, values)
        self.line = line
        self.helpers.open.pop()
        return results

    # ---- on scalars

    def helper(self, definition: ast.FunctionDef, name: str, arguments: list[Operand]) -> Operand:
        """A call by value of a helper for these dtypes."""
        signature = name, tuple((operand.dtype, operand.weak) for operand in arguments)
        if signature not in self.helpers.results:
            self.helpers.results[signature] = self.specialise(definition, signature)
        result = self.helpers.results[signature]
        assert isinstance(result.expr, ir.Invoke)
        expr = ir.Invoke(result.expr.helper, tuple(operand.expr for operand in arguments), result.dtype)
        return Operand(expr, result.weak)

    def specialise(self, definition: ast.FunctionDef, signature: Signature) -> Operand:
        """Read the helper for arguments of these dtypes."""
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

    # ---- on arrays

    def inline(self, definition: ast.FunctionDef, values: list[Value]) -> list[Value]:
        """The statements of a function in place of its call, under names of their own."""
        value = returned(definition)
        if value is None:
            raise self.refusal(
                definition, f"'{definition.name}' with a return that is not its last statement"
            )
        renaming = Renaming(self.fresh, self.indices, set(self.loops))
        body, result = renaming.function(definition, value)
        self.stores.update(renaming.stores)
        self.indices |= renaming.loops
        for parameter, argument in zip(definition.args.args, values, strict=True):
            self.parameter(renaming.names[parameter.arg], argument, body)
        for stmt in body:
            self.line = stmt.lineno
            self.statement(stmt)
        if result is None:
            return []
        return [self.read(part) for part in (result.elts if isinstance(result, ast.Tuple) else [result])]

    def parameter(self, name: str, value: Value, body: list[ast.stmt]) -> None:
        """A parameter stands for its argument; a computed one is kept under the parameter's name."""
        if isinstance(value, Array):
            if value.place is None or value.copied:
                value = self.materialised(value, name)
            self.bound[name] = value
            self.unclear.pop(name, None)
        else:
            self.assign_scalar(name, value)


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
            self.define(name, value)

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
