"""An A/A study as people read it: one table, then in words what it means here."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from hpcagent_bench.calibration.report import Finding, Report

DASH = "-"


def print_report(found: Report, console: Console) -> None:
    """The table and the sentences under it."""
    console.print(table(found))
    for line in sentences(found):
        console.print(line, highlight=False, markup=False)


def table(found: Report) -> Table:
    """One row a protocol and condition."""
    grid = Table(title=_title(found), caption=_caption(found), title_justify="left", caption_justify="left")
    grid.add_column("protocol")
    grid.add_column("condition")
    for name in (
        "inputs",
        "false credits",
        "rate, 95 %",
        "nominal",
        "ratio, 95 %",
        "within",
        "between",
        "run",
        "smallest",
    ):
        grid.add_column(name, justify="right")
    for row in found.findings:
        grid.add_row(row.final, row.condition, *_cells(row))
    return grid


def _title(found: Report) -> str:
    facts = found.facts
    cores = ",".join(map(str, facts["cores"]))
    return f"A/A on {facts['node']} ({facts['cpu']}), core {cores}, sizes {facts['sizes']}"


def _caption(found: Report) -> str:
    return (
        "false credits: inputs of identical code credited (faster + slower). within, between: spread of "
        "log time of runs in one process and between processes; run: both together. smallest: the ratio "
        "that a task of this protocol tells from 1 in four of five cases."
    )


def _cells(row: Finding) -> list[str]:
    rate = row.false
    return [
        str(row.inputs),
        f"{rate.count} ({row.faster} + {row.slower})",
        f"{rate.share:.1%} [{rate.low:.1%}, {rate.high:.1%}]" if rate.of else DASH,
        f"{rate.nominal:.1%}",
        _ratio(row),
        _percent(row.within),
        _percent(row.between),
        _percent(row.run),
        DASH if row.smallest is None else f"{row.smallest:.3f}",
    ]


def _ratio(row: Finding) -> str:
    if row.ratio is None:
        return DASH
    if row.ratio.low is None or row.ratio.high is None:
        return f"{row.ratio.value:.4f}"
    return f"{row.ratio.value:.4f} [{row.ratio.low:.4f}, {row.ratio.high:.4f}]"


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{value:.2%}"


def sentences(found: Report) -> list[str]:
    """Which protocol keeps its nominal rate where, what was left out, and whether the machine is fit."""
    lines = []
    for condition, kept in found.keeping.items():
        every = [row.final for row in found.findings if row.condition == condition and row.inputs]
        lost = [stamp for stamp in every if stamp not in kept]
        beside = "quiet" if condition == "quiet" else "beside two busy neighbours"
        if kept:
            lines.append(f"{' and '.join(kept)} keep{'s' * (len(kept) == 1)} the nominal rate, {beside}")
        if lost:
            lines.append(f"{' and '.join(lost)} credit{'s' * (len(lost) == 1)} more than nominal, {beside}")
    for row in found.findings:
        if row.suspect:
            lines.append(f"{row.final} {row.condition}: {row.suspect} honest inputs were called suspect")
        if row.unmeasured:
            lines.append(f"{row.final} {row.condition}: {row.unmeasured} inputs could not be measured")
        lines += [f"{row.final} {row.condition}: {fault}" for fault in row.faults[:3]]
    if found.unstable:
        lines.append(f"unstable machine: {'; '.join(found.unstable)}")
        lines += [f"  {note}" for note in found.notes]
    elif found.looks:
        lines.append(f"the node was itself in {found.looks} looks")
    return lines
