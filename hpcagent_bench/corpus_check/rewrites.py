"""Honest ways to compute a kernel that are not its reference: what every band must allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check import reorderings
from hpcagent_bench.corpus_check.calls import native_call
from hpcagent_bench.corpus_check.translation import Translation
from hpcagent_bench.toolchain import flags
from hpcagent_bench.toolchain.in_process import Call

_THREADED: tuple[translators.Language, ...] = ("c", "fortran")


@dataclass(frozen=True)
class Rewrite:
    """``make`` builds it, or gives None where there is nothing to rewrite; NotBuilt when it does not compile.

    ``large_sizes``: threaded ones, and those written by hand, may go wrong at large sizes only.
    """

    label: str
    make: Callable[[], Call | None]
    large_sizes: bool = False


def rewrites(of: Translation, fixtures: Path | None) -> Iterator[Rewrite]:
    """Other builds of the C reference, other orders of its loops, threads, and what was written by hand."""
    kernel, source = of.kernel, of.source("c")
    for label, (family, extra) in flags.REBUILDS.items():
        yield Rewrite(label, _build(kernel, source, family, extra))
    for reordering in reorderings.HONEST:
        yield Rewrite(reordering.label, _reorder(of, reordering))
    for language in _THREADED:
        yield Rewrite(f"threads in {language}", _thread(of, language), large_sizes=True)
    for path in hand_written(kernel, fixtures):
        text = path.read_text(encoding="utf-8")
        yield Rewrite(path.name, _build(kernel, text), large_sizes=True)


def hand_written(kernel: Kernel, fixtures: Path | None) -> list[Path]:
    """``<kernel>_<what>.c`` in the folder of fixtures, those that define the kernel's symbol."""
    if fixtures is None:
        return []
    symbol = re.compile(rf"\b{kernel.symbol}\b")
    found = sorted(fixtures.glob(f"{kernel.name}_*.c"))
    return [path for path in found if symbol.search(path.read_text(encoding="utf-8"))]


def _build(
    kernel: Kernel, source: str, family: str = "gcc", extra: tuple[str, ...] = ()
) -> Callable[[], Call]:
    return lambda: native_call(kernel, source, "c", family=family, extra=extra)


def _reorder(of: Translation, reordering: reorderings.Reordering) -> Callable[[], Call | None]:
    def make() -> Call | None:
        source = reordering.source(of)
        return None if source is None else native_call(of.kernel, source, "c")

    return make


def _thread(of: Translation, language: translators.Language) -> Callable[[], Call | None]:
    """The reference's own loops on several threads, reductions included."""

    def make() -> Call | None:
        source = translators.emit(of.kernel, language, parallel=True)
        if source == of.source(language):
            return None
        return native_call(of.kernel, source, language)

    return make
