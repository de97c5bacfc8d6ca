"""C++: what emit_c writes, with C++'s headers, linkage, ``__restrict__`` and ``std::complex``."""

from __future__ import annotations

from hpcagent_bench.translators.backends import emit_c
from hpcagent_bench.translators.backends.c_types import CPP
from hpcagent_bench.translators.backends.writing import Source


def emit(source: Source) -> str:
    """The C++ text: the kernel's symbol with the parameters of abi.c_declaration."""
    return emit_c.emit(source, CPP)
