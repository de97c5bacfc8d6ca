"""An A/A study as people read it: two tables, then in words what they mean here."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from hpcagent_bench.calibration.report import Finding, Report

DASH = "-"
ENOUGH_INPUTS = 500
"""From here on a rate a third above the nominal one is found out in four studies of five."""


def print_report(found: Report, console: Console) -> None:
    """Two tables, and the sentences under them."""
    facts = found.facts
    cores = ",".join(map(str, facts["cores"]))
    console.print(
        f"A/A on {facts['node']}, {facts['cpu']}, core {cores}, sizes {facts['sizes']}", markup=False
    )
    console.print(rates(found))
    console.print(noise(found))
    for line in sentences(found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def rates(found: Report) -> Table:
    """How often identical code was credited, one row a protocol and condition."""
    grid = _grid("inputs", "credited", "+/-", "rate, 95 %", "nominal")
    grid.caption = "credited: inputs of identical code taken for faster (+) or slower (-)"
    for row in found.findings:
        rate = row.false
        shown = f"{rate.share:.1%} [{rate.low:.1%}, {rate.high:.1%}]" if rate.of else DASH
        split = f"{row.faster}/{row.slower}"
        grid.add_row(_name(row), str(rate.of), str(rate.count), split, shown, f"{rate.nominal:.1%}")
    return grid


def noise(found: Report) -> Table:
    """Bias and spread, one row a protocol and condition."""
    grid = _grid("ratio, 95 %", "within", "between", "run", "tells")
    grid.caption = (
        "within, between: spread of log time of runs in one process, and between processes; run: both "
        "together; tells: the smallest ratio that a task tells from 1 in four of five cases"
    )
    for row in found.findings:
        spreads = map(_percent, (row.within, row.between, row.run))
        smallest = DASH if row.smallest is None else f"{row.smallest:.3f}"
        grid.add_row(_name(row), _ratio(row), *spreads, smallest)
    return grid


def _grid(*columns: str) -> Table:
    grid = Table(caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("protocol", no_wrap=True)
    for name in columns:
        grid.add_column(name, justify="right", no_wrap=True)
    return grid


def _name(row: Finding) -> str:
    return f"{row.final} {row.condition}"


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
    if any(0 < row.inputs < ENOUGH_INPUTS for row in found.findings):
        lines.append(f"below {ENOUGH_INPUTS} inputs a rate a third too high often goes unseen")
    for row in found.findings:
        for why, count in row.suspect.items():
            lines.append(f"{_name(row)}: {count} honest inputs were called suspect: {why}")
        if row.unmeasured:
            lines.append(f"{_name(row)}: {row.unmeasured} inputs could not be measured")
        lines += [f"{_name(row)}: {fault}" for fault in row.faults[:3]]
    if found.unstable:
        lines.append(f"unstable machine: {'; '.join(found.unstable)}")
        lines += [f"  {note}" for note in found.notes]
    elif found.looks:
        lines.append(f"the node was itself in {found.looks} looks")
    return lines
