"""A run's result as a table in the terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcagent_bench.episodes import Work
from hpcagent_bench.report.data import RunReport, load
from hpcagent_bench.stats.population import Answer
from hpcagent_bench.stats.summary import SetupSummary

WIDE = 5
"""Up to this many setups stand side by side; more are listed one block a setup."""


def render(
    run_root: Path,
    console: Console,
    designed: Iterable[Work] | None = None,
    in_flight: Collection[Work] = (),
) -> None:
    """Print kernel × setup (status and S_i), then per setup solved, R, geometric means, tokens, owed work.

    ``designed`` and ``in_flight`` may be given by a caller that knows them; else the run root's plan tells.
    """
    report = load(run_root, designed, in_flight)
    if not report.designed:
        console.print(f"{run_root}: nothing recorded yet")
        return
    begun = {work.setup for work in report.designed if work in report.answers or work in report.flying}
    shown = [setup for setup in report.setups if setup in begun] or list(report.setups)
    for start in range(0, len(shown), WIDE):
        console.print(_kernel_table(report, shown[start : start + WIDE]))
    if len(shown) < len(report.setups):
        console.print(f"setups that have not begun: {len(report.setups) - len(shown)}", highlight=False)
    console.print(_setup_table(report))
    _print_reasons(report, console)


def _kernel_table(report: RunReport, setups: list[str]) -> Table:
    table = Table(title=f"S_i per kernel, {report.root.name}", title_justify="left")
    table.add_column("kernel", no_wrap=True)
    for setup in setups:
        table.add_column(setup, justify="right", overflow="fold")
    for kernel in report.kernels:
        table.add_row(kernel, *(_cell(report, setup, kernel) for setup in setups))
    return table


def _cell(report: RunReport, setup: str, kernel: str) -> Text:
    return Text("\n").join(_state(report, work) for work in report.slots.get((setup, kernel), []))


def _state(report: RunReport, work: Work) -> Text:
    """``solved 1.83``, the failed status with 1, or what the work waits for."""
    if work in report.flying:
        return Text("in flight    –", style="cyan")
    if work in report.owed_class:
        return Text(f"owed {report.owed_class[work]}    –", style="yellow")
    answer = report.answers.get(work)
    if answer is None:
        return Text("–")
    if answer.solved:
        return Text(f"solved {answer.score:7.3f}", style="green" if answer.score >= 1 else "")
    return Text(f"{answer.status} {answer.score:7.3f}", style="red")


def _setup_table(report: RunReport) -> Table:
    table = Table(title="Per setup", title_justify="left")
    table.add_column("setup", overflow="fold")
    for name in ("solved", "R", "GM solved", "GM all", "tokens", "owed"):
        table.add_column(name, justify="right", no_wrap=True)
    owed = Counter(item.work.setup for item in report.owed_items)
    for row in report.summaries:
        table.add_row(
            row.setup,
            f"{row.solved}/{row.tasks}",
            f"{row.rate:.2f}",
            "–" if row.gm is None else f"{row.gm:.3f}",
            f"{row.gm_all:.3f}",
            "–" if row.gm_tokens is None else f"{row.gm_tokens:,.0f}",
            str(owed[row.setup]),
        )
    return table


def _print_reasons(report: RunReport, console: Console) -> None:
    """One line for each unsolved answer and each kind of owed work: why."""
    for work in report.designed:
        answer = report.answers.get(work)
        if answer is not None and answer.state == "unsolved":
            why = answer.reason or "no reason recorded"
            line = f"unsolved  {work.setup}  {work.kernel}  {answer.status}: {why}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    kinds = Counter((item.work.setup, item.owed_class, item.reason) for item in report.owed_items)
    for (setup, owed_class, reason), number in kinds.items():
        line = f"owed      {setup}  {number} ({owed_class}): {reason}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def to_json(
    run_root: Path, designed: Iterable[Work] | None = None, in_flight: Collection[Work] = ()
) -> dict[str, Any]:
    """The table as JSON-ready values at full precision; null is missing, never zero."""
    report = load(run_root, designed, in_flight)
    return {
        "run_root": str(run_root),
        "results_db": str(run_root / "results.db"),
        "tasks": [_task(report, work) for work in report.designed],
        "setups": [_summary(row) for row in report.summaries],
        "owed": [
            {**dataclasses.asdict(item.work), "class": item.owed_class, "reason": item.reason}
            for item in report.owed_items
        ],
        "in_flight": [dataclasses.asdict(work) for work in report.owed.in_flight],
    }


def _summary(row: SetupSummary) -> dict[str, Any]:
    return dataclasses.asdict(row)


def _task(report: RunReport, work: Work) -> dict[str, Any]:
    answer = report.answers.get(work)
    base: dict[str, Any] = {**dataclasses.asdict(work), "state": "unanswered", "status": None, "score": None}
    return base if answer is None else {**base, **_answered(answer)}


def _answered(answer: Answer) -> dict[str, Any]:
    submission = answer.submission
    return {
        "state": answer.state,
        "status": answer.status,
        "score": answer.score if answer.state in ("solved", "unsolved") else None,
        "reason": answer.reason or None,
        "job": answer.episode.job,
        "episode": answer.episode.label,
        "baseline": submission.baseline if submission else None,
        "baseline_ns": submission.baseline_ns if submission else None,
        "native_ns": submission.native_ns if submission else None,
        "preset": submission.preset if submission else None,
        "scores": answer.episode.scores,
        "output_tokens": answer.episode.output_tokens,
    }
