"""Honest ways to compute a kernel that are not its reference: what every band must allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check.calls import Call, native_call
from hpcagent_bench.toolchain import flags

if hasattr(translators, "LANGUAGES"):
    from hpcagent_bench.corpus_check import reorderings


@dataclass(frozen=True)
class Rewrite:
    """``make`` builds it, or gives None where there is nothing to rewrite; NotBuilt when it does not compile.

    ``threaded`` ones, and those written by hand, may go wrong at large sizes only.
    """

    label: str
    make: Callable[[], Call | None]
    large_sizes: bool = False


def rewrites(kernel: Kernel, fixtures: Path | None) -> Iterator[Rewrite]:
    """Other builds of the C reference, other orders of its loops, threads, and what was written by hand."""
    source = translators.emit(kernel, "c")
    for label, (family, extra) in flags.REBUILDS.items():
        yield Rewrite(label, _build(kernel, source, family, extra))
    if hasattr(translators, "LANGUAGES"):
        for reordering in reorderings.HONEST:
            yield Rewrite(reordering.label, _reorder(kernel, reordering))
        for language in ("c", "fortran"):
            yield Rewrite(f"threads in {language}", _thread(kernel, language), large_sizes=True)
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


def _reorder(kernel: Kernel, reordering: reorderings.Reordering) -> Callable[[], Call | None]:
    def make() -> Call | None:
        source = reordering.source(kernel)
        return None if source is None else native_call(kernel, source, "c")

    return make


def _thread(kernel: Kernel, language: str) -> Callable[[], Call | None]:
    """The reference's own loops on several threads, reductions included."""

    def make() -> Call | None:
        source = translators.emit(kernel, language, parallel=True)
        if source == translators.emit(kernel, language):
            return None
        return native_call(kernel, source, language)

    return make
