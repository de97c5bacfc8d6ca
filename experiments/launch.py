"""``python -m experiments.launch +study=NAME``: compose, plan, confirm, submit what is owed, follow."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

import hpcagent_bench
from experiments import executors, follow, progress, runtree, scheduler, show, study, waves
from experiments.compose import Composed, compose, members
from experiments.runtree import RunRoot
from experiments.study import StudySetup
from experiments.submit import submit_wave
from hpcagent_bench import config, owed, paths
from hpcagent_bench.config_check import check_file
from hpcagent_bench.episodes import Work
from hpcagent_bench.errors import UserError

EPILOG = """\
examples:
  python -m experiments.launch                                 the studies there are
  python -m experiments.launch +study=quickstart action=plan   what would run, and nothing more
  python -m experiments.launch +study=quickstart               run what is owed, here
  python -m experiments.launch +study=quickstart cluster=devcluster sizes=tiny
  python -m experiments.launch +study=quickstart setups='*-autotune' kernels=tsvc_2_s311,ext_*
  python -m experiments.launch +study=llr40 action=plan        the whole loop-level study
  python -m experiments.launch +study=llr40 sizes=laptop setups='*-autotune-*,*-reference-*'

words:
  +study=NAME  cluster=NAME  partition=NAME  judge=NAME  sizes=NAME  statistics=NAME   members of conf/
  action=run|plan|diff    plan stops after the plan; diff says what changed since the last wave
  setups=GLOB,...  kernels=GLOB,...    only these
  runs=FOLDER  fresh=true  follow=false    where run trees lie; a new run root; return after submitting
  any.key.of.conf=VALUE   for example study.budgets.timeout_s=300

The same command again launches only what is still owed. exit codes: 0 nothing is owed any more (or the plan
was shown), 1 work is still owed after following, 2 a mistake in what was typed, 130 interrupted (jobs go on).
"""

ONCE = frozenset({"action", "setups", "kernels", "fresh", "follow"})
"""Words that concern one launch only; the others make the line that runs what is owed."""


@dataclass(frozen=True)
class Launch:
    """One composed launch: the study's setups and kernels, and the part of its work that is wanted now."""

    words: tuple[str, ...]
    composed: Composed
    setups: tuple[StudySetup, ...]
    kernels: tuple[str, ...]
    identity: str
    wanted: tuple[Work, ...]

    @property
    def root(self) -> config.Root:
        """The configuration."""
        return self.composed.root

    @property
    def runs(self) -> Path:
        """The folder of run trees."""
        return Path(self.root.runs).expanduser().absolute()


def prepare(words: Sequence[str], conf: Path | None = None) -> Launch:
    """Everything that can be refused, refused before anything is touched."""
    composed = compose(words, conf)
    root = composed.root
    study.check(root)
    kernels = study.kernels_of(root)
    setups = study.expand(root)
    study.controls(root, setups)
    names = [setup.name for setup in setups]
    some = study.chosen(names, root.setups, "setups")
    wanted = study.work_of(some, study.chosen(kernels, root.kernels, "kernels"), root.study.repeat)
    return Launch(tuple(words), composed, setups, kernels, study.identity(root, setups, kernels), wanted)


def current(launch: Launch) -> tuple[RunRoot | None, progress.RunState | None]:
    """The run root of this study and where it stands; none when it is new or ``fresh``."""
    found = None if launch.root.fresh else runtree.find(launch.runs, launch.identity)
    if found is None:
        return None, None
    return found, progress.take(found, launch.root.cluster, launch.wanted)


def plan_of(launch: Launch, state: progress.RunState | None) -> waves.Plan:
    """What is owed now, packed into node jobs."""
    split = state.plan if state else owed.plan(launch.wanted, ())
    cluster = launch.root.cluster
    limit = cluster.max_array_size
    if cluster.executor == "slurm" and split.owed:
        executors.use_slurm_conf(cluster)
        limit = scheduler.max_array_size(limit)
    return waves.plan(launch.wanted, split, launch.root, {s.name: s for s in launch.setups}, limit)


def plan_record(launch: Launch, plan: waves.Plan) -> dict[str, Any]:
    """``plan.json``: what the study is made of, by which code, and the newest plan."""
    designed = study.work_of((s.name for s in launch.setups), launch.kernels, launch.root.study.repeat)
    return {
        "identity": launch.identity,
        "words": [w for w in launch.words if w.lstrip("+").split("=")[0] not in ONCE],
        "study": launch.root.study.experiment,
        "title": launch.root.study.title,
        "version": getattr(hpcagent_bench, "__version__", None),
        "commit": commit(),
        "planned": time.time(),
        "controls": study.controls(launch.root, launch.setups),
        "setups": {s.name: vars(s.row) for s in launch.setups},
        "kernels": list(launch.kernels),
        "designed": [[w.setup, w.kernel, w.slot] for w in designed],
        "plan": show.plan_json(plan),
    }


def commit() -> str | None:
    """The checkout's commit, with a mark when files were changed; None outside a checkout."""
    if not (paths.project_root() / ".git").exists():  # installed, perhaps inside somebody else's repository
        return None
    try:
        argv = ["git", "-C", str(paths.project_root()), "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def confirm(plan: waves.Plan, yes: bool, console: Console) -> bool:
    """One question when models will be paid for; never for work that costs none."""
    if plan.max_tokens == 0 or yes:
        return True
    if not sys.stdin.isatty():
        raise UserError(f"this plan may cost tokens: {show.bounds(plan)}", "add --yes to agree")
    return console.input("Launch? [y/N] ").strip().lower() in ("y", "yes")


def submit(launch: Launch, plan: waves.Plan, root: RunRoot | None) -> RunRoot:
    """Freeze configuration and code into the run root (a new one when None) and submit the wave."""
    executors.use_slurm_conf(launch.root.cluster)
    root = root or runtree.create(launch.runs, launch.root.study.experiment)
    record = plan_record(launch, plan)
    paths.write_atomic(root.path / runtree.PLAN, json.dumps(record, indent=1))
    if not (root.path / runtree.CONFIG).is_file():
        paths.write_atomic(root.path / runtree.CONFIG, launch.composed.text)
    code = runtree.snapshot(root)
    submit_wave(root, launch.composed, plan, {s.name: s for s in launch.setups}, code, record["commit"])
    return root


def show_diff(root: RunRoot | None, plan: waves.Plan, console: Console) -> None:
    """What the plan owes that the last wave did not carry, and what is no longer owed."""
    records = root.wave_records() if root else []
    last = {Work(j["setup"], k, s) for j in records[-1]["jobs"] for k, s in j["work"]} if records else set()
    now = {item.work: f"{item.owed_class}: {item.reason}" for item in plan.owed.owed}
    for work in sorted(now):
        mark = "=" if work in last else "+"
        console.print(f"{mark} {work.setup} {work.kernel} slot {work.slot}  {now[work]}", highlight=False)
    for work in sorted(last - set(now)):
        console.print(f"- {work.setup} {work.kernel} slot {work.slot}  no longer owed", highlight=False)
    console.print(
        f"wave {len(records) + 1} against wave {len(records)}: {show.bounds(plan)}", highlight=False
    )


def list_studies(console: Console, as_json: bool) -> int:
    """The studies there are, with the line to type."""
    found = {}
    for name in members("study"):
        path = paths.conf_root() / "study" / f"{name}.yaml"
        found[name] = str(check_file(path, f"conf/study/{name}.yaml", config.Study).get("title", ""))
    if as_json:
        print(json.dumps({"studies": found}))
        return 0
    for name, title in found.items():
        console.print(
            f"python -m experiments.launch +study={name}    {title}", highlight=False, soft_wrap=True
        )
    return 0


def run(launch: Launch, as_json: bool, yes: bool, console: Console) -> int:
    """``action=run``: submit what is owed and follow; with nothing owed, show what there is."""
    with runtree.launch_lock(launch.runs, launch.root.study.experiment):
        root, state = current(launch)
        plan = plan_of(launch, state)
        title = f"{launch.root.study.experiment} on {launch.root.cluster.name}"
        if plan.owed.owed:
            study.refuse_obstacles(launch.setups, (item.work.setup for item in plan.owed.owed))
            show.print_plan(console, plan, title)
            if not confirm(plan, yes, console):
                return 0
            root = submit(launch, plan, root)
            console.print(f"submitted to {root.path}", highlight=False, soft_wrap=True)
        else:
            flying, ungraded = len(plan.owed.in_flight), len(plan.owed.ungraded)
            told = f"{flying} episodes are in flight" if flying else "everything is delivered"
            if ungraded and not flying:
                told = f"{ungraded} answers wait for a final grade"
            console.print(f"nothing is owed: {told}")
    assert root is not None  # a study without work is refused when its tag is read
    if launch.root.follow:
        state = follow.follow(root, launch.root.cluster, console)
    else:
        state = progress.take(root, launch.root.cluster)
        console.print(f"see: hpcagent-bench status {root.path}", highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps({**state.to_json(), "report": _report(root)}))
    elif launch.root.follow or not plan.owed.owed:
        follow.finish(state, console)
    left = [item for item in state.plan.owed if item.work in set(launch.wanted)]
    if left and launch.root.follow:
        console.print(
            f"{len(left)} episodes are owed still: {show.why(left)}", highlight=False, soft_wrap=True
        )
        console.print("the same command runs them again", highlight=False)
        return 1
    return 0


def _report(root: RunRoot) -> dict[str, Any] | None:
    from hpcagent_bench.report import table

    return table.to_json(root.path) if root.results.is_file() else None


class _Parser(argparse.ArgumentParser):
    """Says in one line what was mistyped."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"launch: {message}; see: {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = _Parser(
        prog="python -m experiments.launch",
        description="Run what a study still owes, on this machine or on a Slurm cluster.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="key=value", help="study, group members and settings")
    parser.add_argument("--json", action="store_true", help="plain values on standard output, for scripts")
    parser.add_argument("--yes", action="store_true", help="agree to the cost without being asked")
    args = parser.parse_intermixed_args(argv)
    console = show.console(stderr=args.json)
    if not args.words:
        return list_studies(console, args.json)
    try:
        launch = prepare(args.words)
        if launch.root.action == "run":
            return run(launch, args.json, args.yes, console)
        root, state = current(launch)
        plan = plan_of(launch, state)
        if args.json:
            print(json.dumps({"run": str(root.path) if root else None, **show.plan_json(plan)}))
        elif launch.root.action == "diff":
            show_diff(root, plan, console)
        else:
            show.print_plan(console, plan, f"{launch.root.study.experiment} on {launch.root.cluster.name}")
            for line in show.obstacle_lines(launch.setups, (work.setup for work in launch.wanted)):
                console.print(line, highlight=False, soft_wrap=True)
    except UserError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; jobs already submitted go on: hpcagent-bench status --follow", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
