"""From a kernel's NumPy reference to its typed form: AST in, IR out, with a clear refusal of the rest.

Covered: loops over ``range``, ``while``, ``if``, ``break`` and ``continue``; scalars of all dtypes by NumPy's
rules; arrays by element, slice, index array and mask; the functions of ``functions``, ``calls``, ``making``
and ``shaping``; helper functions. Anything else raises Unsupported with file, line and text.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.frontend import bounds
from hpcagent_bench.translators.frontend.helpers import FunctionReader, Helpers, names, plain_parameters
from hpcagent_bench.translators.frontend.knowledge import Knowledge
from hpcagent_bench.translators.frontend.reading import Unsupported, text
from hpcagent_bench.translators.frontend.renaming import renamed, tidy
from hpcagent_bench.translators.frontend.steps import settings
from hpcagent_bench.translators.frontend.sums import ONE, ZERO, minus, number

__all__ = ["Unsupported", "translate"]


def translate(kernel: Kernel, datatype: str = "float64") -> ir.Function:
    """The typed form of ``kernel``'s reference in that precision; Unsupported names what is not covered."""
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    reader = _KernelReader(kernel, datatype)
    reader.declare()
    function, reader.helpers = _module(reader, tree)
    plain_parameters(reader, function)
    reader.taken = {*names(function), *reader.helpers.functions}
    arguments = settings(kernel)
    reader.known = Knowledge(arguments, frozenset(kernel.size_symbols), elements=_elements(kernel, reader))
    body = reader.settle(function.body, arguments)
    if body and isinstance(body[-1], ir.Return):
        body = body[:-1]
    arrays, locals_, body = _pruned(reader, body)
    translated = ir.Function(
        name=function.name,
        arg_order=kernel.arg_order,
        arrays=arrays,
        scalars={name: operand.dtype for name, operand in reader.scalars.items()},
        locals=locals_,
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


def _elements(kernel: Kernel, reader: FunctionReader) -> dict[str, tuple[ir.Expr | None, ir.Expr | None]]:
    """Lowest and highest value of the elements of integer arguments that the kernel does not write."""
    found: dict[str, tuple[ir.Expr | None, ir.Expr | None]] = {}
    for name, declared in kernel.arrays.items():
        array = reader.arrays[name]
        if name in kernel.outputs or not ir.is_integer(array.dtype):
            continue
        if isinstance(declared.domain, tuple):
            low, high = (_end(reader, end) for end in declared.domain)
            found[name] = low, high
        elif declared.domain is None and not getattr(kernel.manifest.init, "func_name", None):
            found[name] = ZERO, minus(array.shape[0], ONE) if len(array.shape) == 1 else None
    return found


def _end(reader: FunctionReader, end: object) -> ir.Expr | None:
    if isinstance(end, str):
        return reader.integer(ast.parse(end, mode="eval").body)
    return number(int(end)) if isinstance(end, (int, float)) and end == int(end) else None


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


def _pruned(
    reader: _KernelReader, body: tuple[ir.Stmt, ...]
) -> tuple[dict[str, ir.Array], dict[str, str], tuple[ir.Stmt, ...]]:
    """Arrays, locals and body without what only a first attempt at some loops used."""
    every = list(ir.statements(body))
    touched = {name for stmt in every for expr in ir.expressions(stmt) for name in ir.reads(expr)}
    touched |= {stmt.array for stmt in every if isinstance(stmt, ir.Store)}
    arrays = {name: array for name, array in reader.arrays.items() if not array.local or name in touched}
    locals_ = {name: dtype for name, (dtype, _) in reader.locals.items() if name in ir.assigned(body)}
    kept = tuple(stmt for stmt in body if not isinstance(stmt, ir.Allocate) or stmt.array in arrays)
    used = {*arrays, *locals_, *reader.scalars, *(helper.name for helper in reader.helpers.made)}
    used |= {stmt.var for stmt in every if isinstance(stmt, ir.For)} | reader.helpers.functions.keys()
    names = tidy(reader.made, used)
    arrays = {names.get(name, name): replace(a, name=names.get(name, name)) for name, a in arrays.items()}
    locals_ = {names.get(name, name): dtype for name, dtype in locals_.items()}
    return arrays, locals_, renamed(kept, names)


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
