"""The task fingerprint: what a kernel asks for, as one hash that ignores layout, comments and sizes."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcagent_bench.corpus.spec import Kernel


def task_fingerprint(kernel: Kernel) -> str:
    """SHA-256 of what the kernel asks for (scoring.md 1.1).

    Covers the syntax trees of the reference and of the initializer without docstrings and comments, how the
    arguments are declared and filled, the configurations and the entry symbol. Sizes are excluded: a new rung
    is the same task.
    """
    init = kernel.manifest.init
    task: dict[str, Any] = {
        "reference": _canonical(_tree(kernel.numpy_source)),
        "arrays": {name: declaration.model_dump() for name, declaration in kernel.arrays.items()},
        "scalars": dict(sorted(init.scalars.items())),
        "parameters": list(kernel.arg_order),
        "outputs": sorted(kernel.outputs),
        "configs": [dict(sorted(row.items())) for row in kernel.configs],
        "symbol": kernel.symbol,
    }
    if kernel.initializer is not None:
        task["initializer"] = {
            "code": _canonical(_tree(kernel.initializer)),
            "function": init.func_name,
            "parameters": init.input_args,
            "arrays": list(init.made_by_function),
        }
    if init.scalar_dtypes:
        task["scalar_dtypes"] = init.scalar_dtypes
    return hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()


def _tree(source: Path) -> ast.Module:
    return ast.parse(source.read_text(encoding="utf-8"))


def _canonical(node: Any) -> Any:
    """A syntax tree as plain lists that do not change with the Python version: empty fields are left out."""
    if isinstance(node, list):
        return [_canonical(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name in sorted(node._fields):
        value = getattr(node, name, None)
        if name in ("type_comment", "kind", "ctx") or value is None or value == []:
            continue
        if (
            name == "body"
            and isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        ):
            value = value[1:]
        fields.append([name, _canonical(value)])
    return [type(node).__name__, fields]
