"""What can be said about a kernel without running it, beyond what loading it checks: titles and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from hpcagent_bench.corpus import manifest, spec
from hpcagent_bench.corpus.manifest import PRESETS
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.errors import UserError


def check(kernel: Kernel, titles: Mapping[str, tuple[str, str]], report: Report) -> None:
    """``titles`` gives name and short name of every kernel of the corpus."""
    _titles(kernel, titles, report)
    _ladder(kernel, report)


def _titles(kernel: Kernel, titles: Mapping[str, tuple[str, str]], report: Report) -> None:
    found = clash(kernel, titles)
    if found:
        hint = "figures could not tell them apart: choose another name or short-name"
        report.add("titles", "failed", found, hint)
    else:
        report.add("titles", "ok")


def clash(kernel: Kernel, titles: Mapping[str, tuple[str, str]]) -> str:
    """Which other kernel is called the same, as text; empty when none is."""
    mine = _folded(title(kernel))
    for other, pair in sorted(titles.items()):
        if other != kernel.name and mine & _folded(pair):
            return f"'{min(mine & _folded(pair))}' is also the title or short name of {other}"
    return ""


def title(kernel: Kernel) -> tuple[str, str]:
    """Name and short name as figures print them."""
    return kernel.manifest.name, kernel.manifest.short_name or kernel.manifest.name


def _folded(pair: tuple[str, str]) -> set[str]:
    return {text.casefold() for text in pair}


def _ladder(kernel: Kernel, report: Report) -> None:
    """S < M <= L <= XL for every size, L near the geometric middle (a note where it is not)."""
    presets = kernel.presets
    if not kernel.size_symbols:
        report.add(
            "sizes", "failed", "no size differs between presets", "let at least one size grow from S to XL"
        )
        return
    for symbol in kernel.size_symbols:
        steps = [presets[preset][symbol] for preset in PRESETS]
        if steps != sorted(steps):
            report.add("sizes", "failed", f"{symbol} does not grow from S to XL: {steps}")
            return
        middle = round(math.sqrt(steps[1] * steps[3]))
        if abs(steps[2] - middle) > 0.02 * middle:
            report.add(
                "sizes", "note", f"L.{symbol} = {steps[2]}; the geometric middle of M and XL is {middle}"
            )
    report.add("sizes", "ok")


def corpus_titles(root: Path | None = None) -> dict[str, tuple[str, str]]:
    """Kernel name to title and short name; kernels whose manifest is wrong are left to their own check."""
    titles = {}
    for name, folder in spec.discover(root).items():
        try:
            declared = manifest.read(folder / f"{name}.yaml")
        except UserError:
            continue
        titles[name] = (declared.name, declared.short_name or declared.name)
    return titles
