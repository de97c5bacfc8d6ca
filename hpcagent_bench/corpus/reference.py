"""The Python files of a kernel folder: which function is the reference, what it and the initializer take."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpcagent_bench.errors import UserError, did_you_mean

GENERATORS = ("datatype", "rng", "structure_rng")
"""What an initializer may take besides its declared arguments."""


def entry(source: Path, wanted: str) -> tuple[str, tuple[str, ...]]:
    """Name and parameters of the reference: the only top-level def, or the one called ``wanted``."""
    functions = _functions(source, "the NumPy reference")
    named = [node for node in functions if node.name == wanted]
    chosen = named or functions
    if len(chosen) != 1:
        raise UserError(
            f"{source}: {len(functions)} functions and none is called '{wanted}'", "set func_name"
        )
    return chosen[0].name, _parameters(source, chosen[0])


def initializer(source: Path, wanted: str, declared: list[str]) -> tuple[str, ...]:
    """The parameters of function ``wanted``: the declared ones, then any of GENERATORS; else a UserError."""
    functions = {node.name: node for node in _functions(source, "the initializer")}
    if wanted not in functions:
        raise UserError(f"{source}: no function '{wanted}' (init.func_name)", did_you_mean(wanted, functions))
    found = _parameters(source, functions[wanted])
    own, rest = found[: len(declared)], found[len(declared) :]
    if list(own) != declared or any(name not in GENERATORS for name in rest):
        raise UserError(
            f"{source}:{functions[wanted].lineno}: {wanted} takes {', '.join(found)}",
            f"init.input_args asks for ({', '.join([*declared, *GENERATORS])}); the last three are optional",
        )
    return found


def load_function(source: Path, name: str) -> Callable[..., Any]:
    """Execute a Python file of a kernel folder and return one of its functions."""
    code = compile(source.read_text(encoding="utf-8"), str(source), "exec")
    namespace: dict[str, Any] = {"__name__": source.stem}
    exec(code, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def _functions(source: Path, what: str) -> list[ast.FunctionDef]:
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{source}: {what} cannot be read", error.strerror or "") from None
    except SyntaxError as error:
        raise UserError(f"{source}:{error.lineno}: not valid Python", error.msg) from None
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _parameters(source: Path, function: ast.FunctionDef) -> tuple[str, ...]:
    args = function.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
        raise UserError(f"{source}:{function.lineno}: parameters must be plain names")
    return tuple(arg.arg for arg in args.args)
