"""Live progress of a run, from the files its jobs write; ends with the merge, the table and the figure."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from experiments import progress
from experiments.inflight import JobView
from experiments.progress import RunState
from experiments.runtree import RunRoot
from experiments.show import duration, ungraded_lines
from hpcagent_bench import config
from hpcagent_bench.report import figure, table

REFRESH_S = 0.5
PLAIN_S = 10.0
MERGE_S = 15.0
"""While jobs run, their shards are merged this often, so that counts of graded work stay current."""


def follow(root: RunRoot, cluster: config.Cluster, console: Console) -> RunState:
    """Show progress until no job of the run is in flight; returns where the run then stands."""
    state = progress.take(root, cluster)
    if state.live:
        shown = _on_terminal if console.is_terminal else _in_lines
        shown(root, cluster, console, state)
        state = progress.take(root, cluster)
    return state


def _watch(
    root: RunRoot, cluster: config.Cluster, state: RunState, tell: Callable[[RunState, float], None]
) -> None:
    """Poll jobs every ``poll_s`` seconds and call ``tell`` at least twice a second."""
    start = polled = merged = time.monotonic()
    while state.live:
        now = time.monotonic()
        if now - polled >= cluster.poll_s:
            polled = now
            if now - merged >= MERGE_S:
                merged = now
                state = progress.take(root, cluster)
            else:
                state = RunState(root, tuple(progress.survey(root, cluster)), state.plan, state.notes)
        tell(state, now - start)
        time.sleep(REFRESH_S)


def _on_terminal(root: RunRoot, cluster: config.Cluster, console: Console, state: RunState) -> None:
    spinner = Spinner("dots")
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def tell(now: RunState, elapsed: float) -> None:
            spinner.text = Text(f"{duration(elapsed)}  {headline(now)}")
            live.update(Group(spinner, _jobs(now.live)))

        _watch(root, cluster, state, tell)


def _jobs(jobs: tuple[JobView, ...], most: int = 12) -> Table:
    grid = Table.grid(padding=(0, 2))
    for job in sorted(jobs, key=lambda j: j.state == "queued")[:most]:
        grid.add_row(job.setup, job.state, progress.doing(job))
    if len(jobs) > most:
        grid.add_row(f"and {len(jobs) - most} more jobs", "", "")
    return grid


def _in_lines(root: RunRoot, cluster: config.Cluster, console: Console, state: RunState) -> None:
    """One line when something changes, and at least one every ten seconds."""
    last: dict[str, tuple[str, float]] = {}

    def tell(now: RunState, elapsed: float) -> None:
        for job in now.live:
            said = f"{job.setup}  {job.state}  {progress.doing(job)}"
            before, when = last.get(job.stem, ("", -PLAIN_S))
            due = elapsed - when >= (PLAIN_S if job.state != "queued" else 6 * PLAIN_S)
            if due or (said != before and elapsed - when >= 1.0):
                last[job.stem] = (said, elapsed)
                console.print(f"{duration(elapsed)}  {said}", highlight=False, soft_wrap=True)

    _watch(root, cluster, state, tell)


def headline(state: RunState) -> str:
    """Counts of jobs by state."""
    counts: dict[str, int] = {}
    for job in state.jobs:
        counts[job.state] = counts.get(job.state, 0) + 1
    order = ("running", "queued", "stalled", "unknown", "ended", "lost")
    return "jobs: " + ", ".join(f"{counts[name]} {name}" for name in order if name in counts)


def finish(state: RunState, console: Console) -> None:
    """The result table, and where results and figure lie."""
    root = state.root
    if not root.results.is_file():
        console.print("nothing is recorded yet")
        return
    flying = state.plan.in_flight
    table.render(root.path, console, in_flight=flying)
    written = figure.write(root.path, in_flight=flying)
    for note in [*state.notes, *ungraded_lines(state)]:
        console.print(note, highlight=False, soft_wrap=True)
    newest = max((job.wave for job in state.jobs), default=0)
    for job in (job for job in state.jobs if job.wave == newest):
        if job.state == "lost" or job.end.get("rc") or job.end.get("merge", "ok") != "ok":
            told = job.end.get("reason", job.detail)
            merge = job.end.get("merge", "ok")
            told += "" if merge == "ok" else f"; {merge}"
            console.print(
                f"job {job.stem}: {told}  ({job.folder or 'no folder'})", highlight=False, soft_wrap=True
            )
    console.print(f"results  {root.results}", highlight=False, soft_wrap=True)
    for kind, path in written.items():
        if kind.lstrip(".") == "png":
            console.print(f"figure   {path}", highlight=False, soft_wrap=True)
