"""Speedup per kernel and setup as a figure (PNG and PDF) with the CSV of what it shows beside it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcagent_bench.episodes import Work
from hpcagent_bench.paths import write_atomic
from hpcagent_bench.report.data import RunReport, load
from hpcagent_bench.stats.population import KernelAnswer, setup_kernel_answers
from hpcagent_bench.stats.summary import BILLED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = "osD^vP*X"
NAME = "speedup"
_FIELDS = (
    "setup",
    "kernel",
    "speedup",
    "solved",
    "status",
    "solved_slots",
    "slots",
    "baseline_ns",
    "native_ns",
    "preset",
)


def write(
    run_root: Path, designed: Iterable[Work] | None = None, in_flight: Collection[Work] = ()
) -> dict[str, Path]:
    """Write ``<run_root>/report/speedup.{png,pdf,csv}`` and results.json; returns their paths by suffix.

    One mark a kernel and setup on a logarithmic axis, a hollow one at 1 where no solved answer exists, and a
    geometric-mean row per setup over its solved kernels.
    """
    from hpcagent_bench.report.table import to_json

    report = load(run_root, designed, in_flight)
    folder = run_root / "report"
    found = {suffix: folder / f"{NAME}.{suffix}" for suffix in ("csv", "png", "pdf")}
    answers = setup_kernel_answers(report.designed, report.answers, BILLED)
    write_atomic(found["csv"], _csv(report, answers))
    found["json"] = folder / "results.json"
    told = to_json(run_root, report.designed, report.owed.in_flight)
    write_atomic(found["json"], json.dumps(told, indent=1))
    if report.designed:
        _draw(report, answers, found)
    else:
        del found["png"], found["pdf"]
    return found


def _status(report: RunReport, answer: KernelAnswer) -> str:
    if answer.carried is not None:
        return answer.carried.status
    return "unanswered"


def _csv(report: RunReport, answers: dict[tuple[str, str], KernelAnswer]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, _FIELDS, lineterminator="\n")
    table.writeheader()
    for (setup, kernel), answer in answers.items():
        submission = answer.carried.submission if answer.carried is not None else None
        row: dict[str, Any] = {
            "setup": setup,
            "kernel": kernel,
            "speedup": repr(answer.score) if answer.solved else "",
            "solved": int(answer.solved),
            "status": _status(report, answer),
            "solved_slots": answer.solved_slots,
            "slots": answer.slots,
        }
        if submission is not None:
            row |= {name: getattr(submission, name) for name in ("baseline_ns", "native_ns", "preset")}
        table.writerow(row)
    return text.getvalue()


def _draw(report: RunReport, answers: dict[tuple[str, str], KernelAnswer], found: dict[str, Path]) -> None:
    """Draw without pyplot: no global state, no display, safe beside other threads."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = len(report.kernels) + 1
    figure = Figure(figsize=(7.5, max(2.6, 0.34 * rows + 1.4)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, setup in enumerate(report.setups):
        _plot_setup(axes, report, answers, number, setup)
    _dress(axes, report)
    for suffix in ("png", "pdf"):
        _save(figure, found[suffix])


def _plot_setup(
    axes: Axes,
    report: RunReport,
    answers: dict[tuple[str, str], KernelAnswer],
    number: int,
    setup: str,
) -> None:
    many = len(report.setups)
    shift = 0.0 if many == 1 else 0.5 * (number / (many - 1) - 0.5)
    colour, mark = f"C{number % 10}", MARKS[number // 10 % len(MARKS)]
    solved: list[tuple[float, float]] = []
    missing: list[tuple[float, float]] = []
    for place, kernel in enumerate(report.kernels):
        answer = answers.get((setup, kernel))
        if answer is not None:
            (solved if answer.solved else missing).append((answer.score, place + shift))
    gm = next(row.gm for row in report.summaries if row.setup == setup)
    label = setup if gm is None else f"{setup} (GM {gm:.2f})"
    if gm is not None:
        solved.append((gm, len(report.kernels) + shift))
    axes.plot(*_split(solved), mark, color=colour, label=label, ms=6)
    axes.plot(*_split(missing), mark, color=colour, mfc="none", ms=6)


def _split(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _dress(axes: Axes, report: RunReport) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.5), max(high, 2.0))
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1.0, color="0.5", lw=0.8, zorder=0)
    axes.axhline(len(report.kernels) - 0.5, color="0.7", lw=0.8, zorder=0)
    axes.set_yticks(range(len(report.kernels) + 1), [*report.kernels, "geometric mean"])
    axes.set_ylim(len(report.kernels) + 0.6, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("speedup S over the faster reference (hollow at 1: no solved answer)")
    axes.figure.legend(loc="outside upper left", frameon=False, fontsize="small", ncols=1)


def _save(figure: Figure, path: Path) -> None:
    """Write beside and rename, so that a page showing the figure never reads half of it."""
    side = path.with_name(f".{path.name}.{os.getpid()}")
    fixed = {"CreationDate": None} if path.suffix == ".pdf" else None
    figure.savefig(side, format=path.suffix[1:], dpi=150, metadata=fixed)
    side.replace(path)
