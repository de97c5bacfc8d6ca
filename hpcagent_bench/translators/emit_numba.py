"""The parallel numba reference: the NumPy function under ``njit``, with one provably independent loop."""

from __future__ import annotations

import ast

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import ir
from hpcagent_bench.translators.dependence import parallel_loop


def emit(kernel: Kernel, function: ir.Function) -> str:
    """A module text with the reference's name and parameter order.

    The outermost independent ``range`` becomes ``prange``; loops with a carried dependence and reductions
    stay serial. The text must stand in a file of its own, where numba keeps its compiled code.
    """
    tree = ast.parse(kernel.numpy_source.read_text(encoding="utf-8"))
    chosen = parallel_loop(function)
    definition = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function.name)
    for node in ast.walk(definition):
        if chosen is not None and isinstance(node, ast.For) and node.lineno == chosen.line:
            assert isinstance(node.iter, ast.Call)
            node.iter.func = ast.Name("prange", ast.Load())
    parallel = chosen is not None  # numba warns when it is asked for parallelism it cannot find
    lines = [
        f"# {kernel.name}: from {kernel.numpy_source.name}",
        "import numpy as np",
        f"from numba import {'njit, prange' if parallel else 'njit'}",
        "",
        "",
        f"@njit(parallel={parallel}, cache=True, fastmath=False)",
        ast.unparse(definition),
        "",
    ]
    return "\n".join(lines)
