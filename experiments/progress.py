"""Where a run stands: its jobs, and per setup what is graded, in flight and owed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import compose, executors, inflight, submit
from experiments.inflight import JobView, read_json
from experiments.runtree import CONFIG, RunRoot
from hpcagent_bench import config, owed
from hpcagent_bench.cluster.merge_results import merge_run
from hpcagent_bench.episodes import Work
from hpcagent_bench.harness import final_rule
from hpcagent_bench.regrade.apply import with_outputs


@dataclass(frozen=True)
class SetupState:
    """Counts of one setup's work; ``reasons`` say why what is owed is owed."""

    setup: str
    designed: int
    graded: int
    queued: int
    running: int
    unknown: int
    owed: int
    lost: int
    reasons: dict[str, int]
    ungraded: int = 0
    """Episodes whose submission is owed a final grade."""


@dataclass(frozen=True)
class RunState:
    """A run at one moment."""

    root: RunRoot
    jobs: tuple[JobView, ...]
    plan: owed.OwedPlan
    notes: tuple[str, ...] = ()

    @property
    def live(self) -> tuple[JobView, ...]:
        """The jobs that are queued, running, or not known to be over."""
        return tuple(job for job in self.jobs if job.in_flight)

    def setups(self) -> list[SetupState]:
        """Per setup, in the order of the study."""
        names = dict.fromkeys(w.setup for w in [*self.plan.delivered, *self.plan.in_flight])
        names.update(dict.fromkeys(i.work.setup for i in [*self.plan.owed, *self.plan.ungraded]))
        order = [s for s in self.root.plan().get("setups", {}) if s in names]
        return [self._setup(name) for name in order or sorted(names)]

    def _setup(self, name: str) -> SetupState:
        mine = [item for item in self.plan.owed if item.work.setup == name]
        ungraded = [item for item in self.plan.ungraded if item.work.setup == name]
        flying = {w for w in self.plan.in_flight if w.setup == name}
        states = {w: job.state for job in self.live for w in job.work if w in flying}
        count = Counter(states.values())
        gone = {w for job in self.jobs if job.state == "lost" for w in job.work}
        return SetupState(
            setup=name,
            designed=sum(w.setup == name for w in self.plan.delivered)
            + len(mine)
            + len(flying)
            + len(ungraded),
            graded=sum(w.setup == name for w in self.plan.delivered),
            queued=count["queued"],
            running=count["running"] + count["stalled"],
            unknown=count["unknown"],
            owed=len(mine),
            lost=sum(item.work in gone for item in mine),
            reasons=dict(Counter(f"{item.owed_class}: {item.reason}" for item in [*mine, *ungraded])),
            ungraded=len(ungraded),
        )

    def to_json(self) -> dict[str, Any]:
        """For scripts: counts, jobs, and every piece that is owed."""
        return {
            "run": str(self.root.path),
            "results": str(self.root.results),
            "setups": [dataclasses.asdict(s) for s in self.setups()],
            "jobs": [_job_json(job) for job in self.jobs],
            "owed": [
                {**dataclasses.asdict(item.work), "class": item.owed_class, "reason": item.reason}
                for item in [*self.plan.owed, *self.plan.ungraded]
            ],
            "in_flight": [dataclasses.asdict(work) for work in self.plan.in_flight],
            "notes": list(self.notes),
        }


def _job_json(job: JobView) -> dict[str, Any]:
    folder = None if job.folder is None else str(job.folder)
    body = {"job": job.stem, "setup": job.setup, "wave": job.wave, "id": job.job_id, "folder": folder}
    return {**body, "state": job.state, "detail": job.detail, "work": len(job.work), "end": job.end}


def designed(root: RunRoot) -> tuple[Work, ...]:
    """The work the study is made of, as its plan recorded it."""
    return tuple(Work(*piece) for piece in root.plan()["designed"])


def cluster_of(root: RunRoot) -> config.Cluster:
    """The cluster settings of the newest wave, else those the run was created with."""
    waves = root.wave_records()
    newest = root.waves / f"{waves[-1]['wave']}.yaml" if waves else root.path / CONFIG
    return compose.load(newest).cluster


def survey(root: RunRoot, cluster: config.Cluster | None = None) -> list[JobView]:
    """The node jobs of a run; arrays whose launcher died while submitting are settled first."""
    cluster = cluster or cluster_of(root)
    if any(wave["executor"] == "slurm" for wave in root.wave_records()) and cluster.executor == "slurm":
        executors.use_slurm_conf(cluster)
    submit.recover(root)
    return inflight.survey(root, cluster)


def take(
    root: RunRoot,
    cluster: config.Cluster | None = None,
    work: Iterable[Work] | None = None,
    merge: bool = True,
    regrades: Sequence[Path] = (),
) -> RunState:
    """Merge what the jobs have recorded and say where the run stands; ``work`` narrows the design.

    ``regrades`` are outputs of grade-under run that count without being applied.
    """
    jobs = survey(root, cluster)
    notes = _merge(root) if merge else ()
    design = tuple(designed(root) if work is None else work)
    flying = {w for job in jobs if job.in_flight for w in job.work}
    tried = {w for job in jobs if not job.in_flight and not job.refused for w in job.work}
    plan = owed.plan(design, _facts(root, regrades), flying, tried)
    return RunState(root, tuple(jobs), plan, notes)


def _facts(root: RunRoot, regrades: Sequence[Path]) -> list[owed.EpisodeFacts]:
    if not regrades:
        return owed.episode_facts(root.results)
    with with_outputs(root.results, regrades) as results:
        return owed.episode_facts(results, final_rule.beside(root.results))


def _merge(root: RunRoot) -> tuple[str, ...]:
    report = merge_run(root.path)
    return tuple(f"not merged: {path}: {reason}" for path, reason in report.skipped)


def doing(job: JobView) -> str:
    """What a job is doing right now, in a few words, from the files it writes."""
    if job.folder is None or job.state == "queued":
        return job.detail
    done = len(list((job.folder / "agents").glob("*/*/tokens.json")))
    judge = read_json(job.folder / "judge" / "rank-0" / "progress.json")
    parts = [f"{done}/{len(job.work)} kernels"]
    if judge.get("kernel") and judge.get("phase") != "idle":
        parts.append(f"{judge.get('route', 'judge')} {judge['kernel']}: {judge['phase']}{_step(judge)}")
    else:
        parts.append(_at_work(job.folder) or job.detail)
    return ", ".join(parts)


def _step(judge: dict[str, Any]) -> str:
    return f" {judge['input']}/{judge['inputs']}" if "input" in judge and "inputs" in judge else ""


def _at_work(folder: Path) -> str:
    """The kernel whose agent works now: the newest worker folder without an end record."""
    open_ = [p for p in (folder / "agents").glob("*/*") if p.is_dir() and not (p / "tokens.json").is_file()]
    if not open_:
        return ""
    newest = max(open_, key=lambda p: p.stat().st_mtime)
    problem = newest.name.split("-")[1]
    served = read_json(folder / "driver.json").get("problems", [])
    kernel = next((p["kernel"] for p in served if str(p["id"]) == problem), newest.name)
    return f"agent at {kernel}"
