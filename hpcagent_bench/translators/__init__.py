"""From a kernel's NumPy reference to compiled ones: the typed form, and C, C++, Fortran and numba from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import frontend, ir
from hpcagent_bench.translators.analysis import parallel
from hpcagent_bench.translators.analysis.dependence import Verdict, verdicts
from hpcagent_bench.translators.backends import emit_c, emit_cpp, emit_fortran, emit_numba
from hpcagent_bench.translators.backends.writing import Source, without_dead_locals
from hpcagent_bench.translators.frontend import Unsupported

__all__ = ["LANGUAGES", "Unsupported", "emit", "explain"]

Language = Literal["c", "cpp", "fortran", "numba"]
_EMITTERS: dict[Language, Callable[[Source], str]] = {
    "c": emit_c.emit,
    "cpp": emit_cpp.emit,
    "fortran": emit_fortran.emit,
    "numba": emit_numba.emit,
}
LANGUAGES: tuple[Language, ...] = tuple(_EMITTERS)


def emit(
    kernel: Kernel, language: Language, datatype: str = "float64", *, parallel: bool | None = None
) -> str:
    """The source of ``kernel``'s reference in ``language``; Unsupported names what cannot be translated.

    By default the compiled languages are sequential and numba runs its outermost independent loop parallel,
    as the judge's references do; ``parallel=True`` also makes reductions so where no independent loop is.
    """
    function = without_dead_locals(frontend.translate(kernel, datatype))
    return _EMITTERS[language](prepared(kernel, function, language, datatype, parallel))


def prepared(
    kernel: Kernel, function: ir.Function, language: Language, datatype: str, parallel_: bool | None
) -> Source:
    """The typed form as a writer takes it, with the loop chosen to run parallel."""
    if parallel_ is False or (parallel_ is None and language != "numba"):
        return Source(kernel, function, datatype)
    function, verdict = parallel.chosen(function, language, reductions=parallel_ is True)
    return Source(kernel, function, datatype, verdict)


def explain(kernel: Kernel) -> tuple[Verdict, ...]:
    """One verdict for every loop of the reference: whether it may run parallel, and why not."""
    return tuple(verdicts(frontend.translate(kernel)).values())
