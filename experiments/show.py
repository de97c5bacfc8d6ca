"""Plans and states as tables for people, and as plain values for scripts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.progress import RunState
from experiments.study import StudySetup, obstacle
from experiments.waves import Plan
from hpcagent_bench.episodes import Work
from hpcagent_bench.owed import OwedItem

PLAIN_WIDTH = 120


def console(stderr: bool = False) -> Console:
    """A console; into a file or a pipe it writes lines of a fixed width."""
    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=PLAIN_WIDTH)


def duration(seconds: float) -> str:
    """Seconds in the two units a person would say."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def why(items: Iterable[OwedItem]) -> str:
    """The reasons of owed work with their counts, most frequent first."""
    counted = Counter(f"{item.owed_class}: {item.reason}" for item in items)
    return "; ".join(f"{count} {reason}" for reason, count in counted.most_common())


def plan_table(plan: Plan, title: str) -> Table:
    """Per setup: what is owed and why, what is done, and the node jobs that would run it."""
    table = Table(title=title, title_justify="left")
    table.add_column("setup", overflow="fold")
    for name in ("owed", "in flight", "done", "node jobs"):
        table.add_column(name, justify="right")
    table.add_column("why owed", overflow="fold")
    owed = plan.owed
    for setup in dict.fromkeys(w.setup for w in plan.work):
        mine = [item for item in owed.owed if item.work.setup == setup]
        counts = [len(mine), _count(owed.in_flight, setup), _count(owed.delivered, setup)]
        jobs = sum(job.setup == setup for job in plan.jobs)
        table.add_row(setup, *map(str, counts), str(jobs), why(mine))
    return table


def _count(work: Iterable[Work], setup: str) -> int:
    return sum(piece.setup == setup for piece in work)


def bounds(plan: Plan) -> str:
    """The upper bounds of a plan in one line."""
    tokens = "no bound on tokens" if plan.max_tokens is None else f"at most {plan.max_tokens:,} tokens"
    tokens = "no model, no tokens" if plan.max_tokens == 0 else tokens
    jobs = len(plan.jobs)
    hours = {name: f"{seconds / 3600:.1f}" for name, seconds in plan.seconds_by_partition.items()}
    apart = ", ".join(f"{name} {value}" for name, value in hours.items()) if len(hours) > 1 else ""
    return (
        f"{len(plan.owed.owed)} episodes in {jobs} node job{'' if jobs == 1 else 's'} "
        f"({len(plan.arrays)} array{'' if len(plan.arrays) == 1 else 's'}); at most "
        f"{duration(plan.wall_seconds)} of wall time, {plan.node_seconds / 3600:.1f} node-hours"
        f"{f' ({apart})' if apart else ''}; {tokens}"
    )


def print_plan(console: Console, plan: Plan, title: str) -> None:
    """The plan as a person reads it."""
    console.print(plan_table(plan, title))
    console.print(bounds(plan), highlight=False, soft_wrap=True)


def obstacle_lines(setups: Iterable[StudySetup], wanted: Iterable[str]) -> list[str]:
    """Of the wanted setups those that cannot run yet, counted by reason."""
    names = set(wanted)
    counted = Counter(why for setup in setups if setup.name in names and (why := obstacle(setup)))
    return [f"{count} setup{'' if count == 1 else 's'} cannot run: {why}" for why, count in counted.items()]


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as values: every owed piece with its reason, every node job, the upper bounds."""
    return {
        "owed": [
            {**dataclasses.asdict(i.work), "class": i.owed_class, "reason": i.reason} for i in plan.owed.owed
        ],
        "in_flight": [dataclasses.asdict(work) for work in plan.owed.in_flight],
        "delivered": [dataclasses.asdict(work) for work in plan.owed.delivered],
        "arrays": [
            {
                "setup": array.setup,
                "part": array.part,
                "jobs": [[[w.kernel, w.slot] for w in job.work] for job in array.jobs],
            }
            for array in plan.arrays
        ],
        "bounds": {
            "wall_seconds": plan.wall_seconds,
            "node_seconds": plan.node_seconds,
            "seconds_by_partition": plan.seconds_by_partition,
            "tokens": plan.max_tokens,
        },
    }


def state_table(state: RunState) -> Table:
    """Per setup: graded, queued, running, unknown, owed and lost."""
    table = Table(title=str(state.root.path), title_justify="left")
    table.add_column("setup", overflow="fold")
    for name in ("graded", "queued", "running", "unknown", "owed", "lost"):
        table.add_column(name, justify="right")
    for s in state.setups():
        counts = (s.queued, s.running, s.unknown, s.owed, s.lost)
        table.add_row(s.setup, f"{s.graded}/{s.designed}", *(str(c) if c else "-" for c in counts))
    return table


def print_state(console: Console, state: RunState) -> None:
    """Where the run stands, then each job that is not over, then what could not be read."""
    console.print(state_table(state))
    for job in state.jobs:
        if job.in_flight or job.state == "lost":
            where = "not started" if job.folder is None else str(job.folder.name)
            console.print(
                f"job {job.stem} ({where}): {job.state}, {job.detail}", highlight=False, soft_wrap=True
            )
    for note in [*state.notes, *ungraded_lines(state)]:
        console.print(note, highlight=False, soft_wrap=True)


def ungraded_lines(state: RunState) -> list[str]:
    """How many answers wait for a final grade and what to type for them; no line when none does."""
    number = len(state.plan.ungraded)
    if not number:
        return []
    words = f"{number} answer{' is' if number == 1 else 's are'} owed a final grade"
    return [f"{words}: hpcagent-bench grade-under worklist --db {state.root.results} --out worklist.jsonl"]


def owed_lines(state: RunState) -> list[str]:
    """``setup done d/N owed k (reasons)``, one line a setup."""
    lines = []
    for s in state.setups():
        reasons = "; ".join(f"{count} {reason}" for reason, count in s.reasons.items())
        flying = s.queued + s.running + s.unknown
        line = f"{s.setup}  done {s.graded}/{s.designed}  owed {s.owed}"
        line += f"  in flight {flying}" if flying else ""
        line += f"  without a final grade {s.ungraded}" if s.ungraded else ""
        lines.append(line + (f"  ({reasons})" if reasons else ""))
    return lines
