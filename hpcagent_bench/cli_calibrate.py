"""``hpcagent-bench calibrate``: an A/A study of the measurement protocols on this machine."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcagent_bench import config, paths
from hpcagent_bench.cli_options import core_list
from hpcagent_bench.errors import UserError

if TYPE_CHECKING:
    from hpcagent_bench.calibration.study import Goal, Study

LEADER = "leader"
PLAIN_S = 10.0
"""How often progress is told where no terminal shows it."""


def calibrate(
    kernels: Annotated[str, typer.Option(help="Kernels, as a glob; dealt in turn.")] = "*",
    pairs: Annotated[int, typer.Option(min=1, help="Measured inputs per protocol and condition.")] = 100,
    protocol: Annotated[
        list[str] | None, typer.Option(help="A credited protocol, may be repeated; default every one.")
    ] = None,
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="Measure beside two busy processes as well.")
    ] = False,
    reference: Annotated[
        str, typer.Option(help="Time this one: leader (of the race), c (starts fast) or numba.")
    ] = "leader",
    sizes: Annotated[str, typer.Option(help="Timed rung, from conf/sizes.")] = "laptop",
    judge: Annotated[str, typer.Option(help="Judge settings, from conf/judge.")] = "default",
    cores: Annotated[str, typer.Option(help="Timed cores, like 1,2; default the last one granted.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study; default runs/calibrate. Run again to go on.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Time references against themselves: how often is identical code credited on this machine?

    Prints per protocol the false credits with their exact interval against the nominal rate, the mean ratio,
    the spread within and between processes and the smallest ratio that can be told from 1, and flags an
    unstable machine. A study that was stopped goes on where it was.

    Example: hpcagent-bench calibrate --pairs 500 --neighbours --sizes laptop
    """
    from rich.console import Console

    from hpcagent_bench.calibration import report
    from hpcagent_bench.calibration.study import BUSY, QUIET, Goal, calibration_stamps
    from hpcagent_bench.report import calibration as pages

    settings, rung = _settings(judge, sizes, reference)
    conditions = (QUIET, BUSY) if neighbours else (QUIET,)
    goal = Goal(calibration_stamps(protocol or []), conditions, pairs)
    study = _study(settings, rung, goal, kernels, reference, cores, out)
    stuck: UserError | None = None
    finished = False
    try:
        _announce(study)
        finished = _run(study)
    except UserError as error:  # what was measured before is shown all the same
        stuck = error
    finally:
        study.context.close()
    found = report.report(study.facts, study.store.done.values(), study.store.looks, study.goal.cells)
    if json_:
        print(json.dumps({**found.as_json(), "finished": finished, "folder": str(study.store.folder)}))
    else:
        pages.print_report(found, Console())
    if stuck is not None:
        raise stuck
    if not finished:
        print(f"stopped; the same command goes on from {study.store.folder}", file=sys.stderr)
        raise typer.Exit(130)


def _settings(judge: str, sizes: str, reference: str) -> tuple[config.Judge, config.Sizes]:
    """The named settings; a reference named outright is every track's denominator."""
    from experiments import compose
    from hpcagent_bench.harness import denominator

    settings, rung = compose.judge_and_sizes(None, judge, sizes)
    if reference != LEADER:
        denominator.parse(reference, "--reference")
        settings.measurement.denominator = config.Denominator(reference, reference, reference)
    return settings, rung


def _study(
    settings: config.Judge,
    rung: config.Sizes,
    goal: Goal,
    kernels: str,
    reference: str,
    cores: str,
    out: Path | None,
) -> Study:
    """The study these options describe, opened or continued."""
    from hpcagent_bench import seal
    from hpcagent_bench.calibration.store import Store, machine_facts
    from hpcagent_bench.calibration.study import Study, eligible
    from hpcagent_bench.cluster.serve import timed_cores
    from hpcagent_bench.harness.context import GradingContext
    from hpcagent_bench.harness.seeds import fresh_seeds

    timed = timed_cores(core_list(cores), settings.measurement.pin_threads)
    if settings.grading.seal:
        seal.require_user_namespaces()
    chosen, left = eligible(kernels, settings)
    if left:
        print(f"{len(left)} kernels left out: {next(iter(left.values()))}", file=sys.stderr)
    facts = {**machine_facts(settings, rung, timed), "reference": reference}
    store = Store.open(out or paths.runs_root() / "calibrate", facts)
    context = GradingContext(settings, rung, timed, fresh_seeds())
    return Study(context, store, chosen, goal, facts=facts)


def _announce(study: Study) -> None:
    """What is going to be measured and about how long it takes, before anything is."""
    goal: Goal = study.goal
    which = " and ".join(stamp.removesuffix("-aa") for stamp in goal.stamps)
    left = study.seconds_left()
    took = "of unknown length" if left is None else f"about {_duration(left)}"
    held = f", {study.measured} of {study.wanted} inputs held already" if study.measured else ""
    print(
        f"calibrate: {goal.pairs} inputs of {which}, {' and '.join(goal.conditions)}, "
        f"over {len(study.kernels)} kernels: {took}{held}",
        file=sys.stderr,
        flush=True,
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _run(study: Study) -> bool:
    """Run to the end; False when it was interrupted."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        study.tell = _Lines()
        return _until_interrupted(study)
    columns = (
        BarColumn(),
        TextColumn("{task.completed}/{task.total} inputs"),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=study.wanted)

        def tell(text: str, done: int, wanted: int, left: float | None) -> None:
            rest = "" if left is None else f"{_duration(left)} left  "
            bar.update(task, completed=done, total=wanted, description=rest + text)

        study.tell = tell
        return _until_interrupted(study)


def _until_interrupted(study: Study) -> bool:
    try:
        study.run()
    except KeyboardInterrupt:
        return False
    return True


class _Lines:
    """Progress in lines, not oftener than every ten seconds."""

    def __init__(self) -> None:
        self._told = float("-inf")

    def __call__(self, text: str, done: int, wanted: int, left: float | None) -> None:
        now = time.monotonic()
        if now - self._told >= PLAIN_S:
            self._told = now
            rest = "" if left is None else f", {_duration(left)} left"
            print(f"{done} of {wanted} inputs{rest}: {text}", file=sys.stderr, flush=True)
