"""What operators ask between waves: ``hpcagent-bench status`` and ``hpcagent-bench owed collect``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from experiments import follow as live
from experiments import progress, runtree, show
from experiments.runtree import RunRoot
from hpcagent_bench import paths
from hpcagent_bench.errors import UserError


def run_root(path: Path | None) -> RunRoot:
    """The run root at ``path``; the newest below ``runs/`` when none is named."""
    if path is None:
        return runtree.newest(paths.runs_root())
    root = RunRoot(path.expanduser().absolute())
    root.plan()
    return root


def status(run: Path | None, json_: bool, follow: bool) -> None:
    """Show where a run stands; with ``follow``, until it ends, and then its results."""
    root = run_root(run)
    console = show.console(stderr=json_)
    try:
        if follow:
            state = live.follow(root, progress.cluster_of(root), console)
            if not json_:
                live.finish(state, console)
                return
        else:
            state = progress.take(root)
    except KeyboardInterrupt:
        raise UserError("interrupted; the jobs go on") from None
    if json_:
        print(json.dumps(state.to_json()))
    else:
        show.print_state(console, state)


def owed_collect(runs: list[Path], json_: bool, regrades: list[Path] | None = None) -> None:
    """Merge what the jobs recorded and say per setup what is done and what is owed, and why.

    ``regrades`` are outputs of grade-under run: they count as if they were applied.
    """
    roots = [run_root(path) for path in runs] or [run_root(None)]
    states = [progress.take(root, regrades=regrades or ()) for root in roots]
    if json_:
        print(json.dumps([state.to_json() for state in states]))
        return
    console = show.console()
    for state in states:
        console.print(f"{state.root.path}", highlight=False, soft_wrap=True)
        for line in show.owed_lines(state):
            console.print(line, highlight=False, soft_wrap=True)
        for note in [*state.notes, *show.ungraded_lines(state)]:
            console.print(note, highlight=False, soft_wrap=True)
        if state.plan.owed:
            words = shlex.join(state.root.plan().get("words", []))
            console.print(f"run them: python -m experiments.launch {words}", highlight=False, soft_wrap=True)
        elif not state.plan.ungraded:
            console.print("nothing is owed" + (", work is in flight" if state.live else ""))
