"""What ``grade`` prints: the verdict, its inputs, its gates, and where the time went."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hpcagent_bench.report import kernel_pages

if TYPE_CHECKING:
    from hpcagent_bench.harness.scoring import ScoredInput, Verdict

Facts = dict[str, Any]
LOG_SHOWN = 40
"""Lines of a build log that are shown."""


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """A sink of a grade's phases: a moving line on a terminal, a line a phase elsewhere, none when quiet."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        with console.status("getting ready") as line:
            yield lambda phase, **facts: line.update(_phase(phase, facts))
    elif quiet:
        yield lambda phase, **facts: None
    else:
        yield lambda phase, **facts: console.print(_phase(phase, facts))


def _phase(phase: str, facts: Mapping[str, object]) -> str:
    where = f" input {facts['input']} of {facts['inputs']}" if "input" in facts else ""
    return f"{phase}{where}"


def facts(verdict: Verdict) -> Facts:
    """A verdict as plain data."""
    submission, build = verdict.submission, verdict.build
    return {
        "kernel": submission.kernel.name,
        "language": submission.language,
        "delivery": submission.source_mode,
        "family": submission.family,
        "route": verdict.settings.protocol.role,
        "protocol": verdict.settings.protocol.stamp,
        "preset": verdict.settings.cells[0].preset,
        "denominator": verdict.denominator,
        "grading_protocol": verdict.bracket,
        "status": verdict.status,
        "accepted": verdict.correct,
        "solved": verdict.solved,
        "score": verdict.score.score,
        "gsd": verdict.score.gsd if verdict.solved else None,
        "reason": verdict.reason,
        "suspicion": verdict.suspicion,
        "judge_fault": verdict.fault,
        "inputs": [_input(scored) for scored in verdict.inputs],
        "inputs_planned": len(verdict.settings.cells),
        "gates": gates(verdict),
        "notes": list(verdict.notes),
        "phases": dict(verdict.phases),
        "build": None
        if build is None
        else {"ok": build.ok, "log": build.log, "commands": [list(argv) for argv in build.commands]},
    }


def _input(scored: ScoredInput) -> Facts:
    result, reduction, race = scored.result, scored.result.reduction, scored.result.race
    return {
        "label": result.cell.label,
        "params": dict(result.cell.params),
        "correct": result.correct,
        "reason": result.runs.failed,
        "native_ns": reduction.candidate if reduction else None,
        "baseline_ns": reduction.baseline if reduction else None,
        "baseline": race.winner if race else None,
        "references_ns": {k: statistics.median(ns) for k, ns in race.times.items() if ns} if race else {},
        "measured": reduction.ratio if reduction else None,
        "p_value": reduction.p_value if reduction else None,
        "significant": reduction.significant if reduction else None,
        "credited": scored.ratio if reduction else None,
        "stopped_at_ns": result.runs.stopped_at_ns,
        "suspect": scored.suspect,
        "note": scored.note,
        "max_rel_error": result.runs.max_rel_error,
    }


def gates(verdict: Verdict) -> list[dict[str, str]]:
    """Every gate of the route with its outcome: passed, failed, or not reached."""
    from hpcagent_bench.harness import anticheat

    found: list[dict[str, str]] = []
    outcome = "passed"
    for gate in anticheat.GATES:
        if verdict.settings.protocol.role not in gate.roles:
            continue
        if gate.name == verdict.gate:
            found.append({"gate": gate.name, "outcome": "failed", "reason": verdict.reason})
            outcome = "not reached"
        else:
            found.append({"gate": gate.name, "outcome": _reached(outcome, verdict, gate.name)})
    return found


def _reached(outcome: str, verdict: Verdict, gate: str) -> str:
    """What became of a gate that did not reject; one kept silent by a judge's fault has not passed."""
    if any(note.startswith(f"{gate} not applied") for note in verdict.notes):
        return "not applied"
    if not verdict.fault:
        return outcome
    return "passed" if gate == "build" and verdict.build is not None and verdict.build.ok else "not decided"


def show(facts: Facts, console: Console | None = None) -> None:
    """Print a verdict for people."""
    out = console or kernel_pages.console()
    family = f", {facts['family']}" if facts["language"] != "python" else ""
    out.print(
        f"[bold]{facts['kernel']}[/]  {facts['language']}{family}, {facts['route']} grade "
        f"{facts['protocol']}, rung {facts['preset']}, against {facts['denominator']}"
    )
    out.print(_headline(facts))
    if facts["inputs"]:
        out.print()
        out.print(_table(facts["inputs"]))
    out.print()
    out.print("gates: " + ", ".join(f"{gate['gate']} {gate['outcome']}" for gate in facts["gates"]))
    for note in facts["notes"]:
        out.print(f"note: {escape(note)}")
    if facts["phases"]:
        told = [f"{name} {seconds:.2f} s" for name, seconds in facts["phases"].items()]
        out.print("time: " + ", ".join(told))
    log = (facts["build"] or {}).get("log", "")
    if log:
        lines = log.splitlines()
        out.print("\nbuild log:")
        out.print(escape("\n".join(lines[:LOG_SHOWN])))
        if len(lines) > LOG_SHOWN:
            out.print(f"({len(lines) - LOG_SHOWN} more lines with --json)")


def _headline(facts: Facts) -> str:
    if facts["judge_fault"]:
        return f"[yellow]not graded[/]: the judge failed: {escape(facts['reason'])}"
    if not facts["accepted"]:
        return f"[red]refused[/] ({facts['status']}): {escape(facts['reason'])}"
    if not facts["solved"]:
        return f"[yellow]accepted, but not to be credited[/]: {escape(facts['reason'])}"
    spread = "" if facts["gsd"] is None else f", geometric standard deviation {facts['gsd']:.3f}"
    suspicion = f"; suspect: {escape(facts['suspicion'])}" if facts["suspicion"] else ""
    word = "score" if facts["route"] == "final" else "speedup"
    measured = f"{word} {facts['score']:.3f} over {len(facts['inputs'])} inputs"
    return f"[green]accepted[/]: {measured}{spread}{suspicion}"


def _table(inputs: list[Facts]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("input", "yours", "baseline", "ratio", "p", "credited", ""):
        table.add_column(column, justify="left" if column in ("input", "") else "right")
    for row in inputs:
        baseline = f"{seconds(row['baseline_ns'])} {row['baseline'] or ''}".strip()
        table.add_row(
            escape(row["label"]),
            seconds(row["native_ns"]),
            baseline,
            _number(row["measured"], ".3f"),
            _number(row["p_value"], ".3g"),
            _number(row["credited"], ".3f"),
            escape(_remark(row)),
        )
    return table


def _remark(row: Facts) -> str:
    if row["reason"]:
        return str(row["reason"])
    if row["suspect"]:
        return f"suspect: {row['suspect']}"
    if row["stopped_at_ns"] is not None:
        return f"stopped at {seconds(row['stopped_at_ns'])}"
    return str(row["note"])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def seconds(ns: float | None) -> str:
    """A time in the unit that suits it."""
    if ns is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
