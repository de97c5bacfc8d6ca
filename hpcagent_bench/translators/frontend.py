"""From a kernel's NumPy reference to its typed form: AST in, IR out, with a clear refusal of the rest.

Covered: loops over ``range``, ``while``, ``if``, ``break`` and ``continue``, scalar locals, element loads and
stores, temporaries, arithmetic of all dtypes by NumPy's rules, the functions of ``functions.py`` and helper
functions on scalars. Anything else raises Unsupported with file, line and text.
"""

from __future__ import annotations

import ast

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import bounds, ir
from hpcagent_bench.translators.helpers import FunctionReader, Helpers, names, plain_parameters
from hpcagent_bench.translators.reading import Unsupported, text
from hpcagent_bench.translators.steps import settings

__all__ = ["Unsupported", "translate"]


def translate(kernel: Kernel, datatype: str = "float64") -> ir.Function:
    """The typed form of ``kernel``'s reference in that precision; Unsupported names what is not covered."""
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    reader = _KernelReader(kernel, datatype)
    reader.declare()
    function, reader.helpers = _module(reader, tree)
    plain_parameters(reader, function)
    reader.taken = {*names(function), *reader.helpers.functions}
    body = reader.settle(function.body, settings(kernel))
    if body and isinstance(body[-1], ir.Return):
        body = body[:-1]
    translated = ir.Function(
        name=function.name,
        arg_order=kernel.arg_order,
        arrays=reader.arrays,
        scalars={name: operand.dtype for name, operand in reader.scalars.items()},
        locals={name: dtype for name, (dtype, _) in reader.locals.items()},
        body=body,
        helpers=_used(reader.helpers.made, body),
    )
    bounds.check(kernel, translated)
    return translated


class _KernelReader(FunctionReader):
    """Reads the reference function itself."""

    def restart(self, taken: frozenset[str]) -> None:
        super().restart(taken)
        self.helpers.restart()


def _module(reader: FunctionReader, tree: ast.Module) -> tuple[ast.FunctionDef, Helpers]:
    """The reference function and its helpers; a module may hold imports of numpy and docstrings besides."""
    functions = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                functions[name] = node
            case ast.Import(names=[ast.alias(name="numpy", asname="np")]):
                continue
            case ast.Expr(value=ast.Constant()):
                continue
            case _:
                hint = "only `import numpy as np` and functions may stand there"
                raise reader.refusal(node, f"'{text(node)}' beside the function", hint)
    return functions.pop(reader.kernel.function), Helpers(functions)


def _used(helpers: list[ir.Helper], body: tuple[ir.Stmt, ...]) -> tuple[ir.Helper, ...]:
    """The helpers that a body calls, directly or through others, in their order."""
    called = _calls(body)
    for helper in reversed(helpers):
        if helper.name in called:
            called |= _calls(helper.body)
    return tuple(helper for helper in helpers if helper.name in called)


def _calls(body: tuple[ir.Stmt, ...]) -> set[str]:
    nodes = (node for stmt in ir.statements(body) for expr in ir.expressions(stmt) for node in ir.walk(expr))
    return {node.helper for node in nodes if isinstance(node, ir.Invoke)}
