"""From a kernel's NumPy reference to compiled references: typed form, C, and parallel numba."""

from __future__ import annotations

from typing import Literal

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import emit_c, emit_numba, frontend
from hpcagent_bench.translators.frontend import Unsupported

__all__ = ["Unsupported", "emit"]


def emit(kernel: Kernel, language: Literal["c", "numba"], datatype: str = "float64") -> str:
    """The source of ``kernel``'s reference in ``language``; Unsupported names what cannot be translated."""
    function = frontend.translate(kernel, datatype)
    if language == "c":
        return emit_c.emit(kernel, function, datatype)
    return emit_numba.emit(kernel, function)
