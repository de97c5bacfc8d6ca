"""What became of every node job of a run: from the scheduler, its folder and its heartbeat."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from experiments import scheduler
from experiments.runtree import RunRoot
from experiments.scheduler import Process, SlurmView, StateClass
from hpcagent_bench import config
from hpcagent_bench.episodes import Work

JobState = Literal["queued", "running", "stalled", "unknown", "ended", "lost"]

IN_FLIGHT: frozenset[JobState] = frozenset({"queued", "running", "stalled", "unknown"})
"""States whose work is never submitted again."""

STALE_S = 60.0
"""Age of a heartbeat, touched every few seconds, from which a job counts as silent."""


@dataclass(frozen=True)
class JobView:
    """One node job as an operator sees it. ``folder`` None: it has not started."""

    stem: str
    setup: str
    wave: int
    work: tuple[Work, ...]
    job_id: str | None
    folder: Path | None
    state: JobState
    detail: str = ""
    end: dict[str, Any] = field(default_factory=dict)
    refused: bool = False

    @property
    def in_flight(self) -> bool:
        """Whether its work must not be submitted again."""
        return self.state in IN_FLIGHT


@dataclass(frozen=True)
class Signs:
    """What is known about one node job. Ages in seconds, None where there is nothing to date."""

    ended: bool = False
    scheduler: StateClass | None = None
    scheduler_answered: bool = True
    process_alive: bool | None = None
    heartbeat_age: float | None = None
    submitted_age: float = 0.0
    phase: str = ""


def decide(signs: Signs, grace_s: float) -> tuple[JobState, str]:
    """The state of a node job and why, by the first rule that applies (a pure function).

    Its own end record is believed first, then the scheduler, then a live process, then a fresh heartbeat. A
    job nobody knows is unknown for ``grace_s``, and only then lost. A scheduler that does not answer never
    makes a job lost.
    """
    fresh = signs.heartbeat_age is not None and signs.heartbeat_age < STALE_S
    if signs.ended:
        return "ended", "left its end record"
    if signs.scheduler == "waiting":
        return "queued", "waits in the scheduler's queue"
    if signs.scheduler == "running" or signs.process_alive:
        if signs.heartbeat_age is not None and not fresh:
            return "stalled", f"silent for {signs.heartbeat_age:.0f} s"
        return ("queued" if signs.phase in ("", "queued") else "running"), signs.phase or "starting"
    if fresh and signs.process_alive is not False and signs.scheduler not in ("ended", "ended-by-system"):
        return "running", f"{signs.phase} (by its heartbeat)"
    if signs.scheduler == "ended-by-system":
        return "lost", "ended by the system"
    if signs.scheduler == "ended" or signs.process_alive is False:
        return "lost", "gone without an end record"
    if not signs.scheduler_answered:
        return "unknown", "the scheduler does not answer"
    youngest = min(a for a in (signs.submitted_age, signs.heartbeat_age) if a is not None)
    if youngest < grace_s:
        return "unknown", "not known to the scheduler yet"
    return "lost", f"known to nobody for {youngest:.0f} s"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty when the file is missing, half visible or no object."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _age(path: Path, now: float) -> float | None:
    try:
        return max(0.0, now - path.stat().st_mtime)
    except OSError:
        return None


def _process(record: dict[str, Any]) -> Process | None:
    try:
        return Process(int(record["pid"]), str(record["host"]), int(record["started"]))
    except (KeyError, TypeError, ValueError):
        return None


def _alive(records: Iterable[dict[str, Any]]) -> bool | None:
    """True when one of the processes runs, False when all are gone, None when none can be told."""
    known = [p.alive() for p in map(_process, records) if p is not None]
    told = [answer for answer in known if answer is not None]
    return any(told) if told else None


def _view(
    root: RunRoot, wave: dict[str, Any], job: dict[str, Any], view: SlurmView, grace_s: float
) -> JobView:
    now = time.time()
    pointer = read_json(root.waves / f"{job['stem']}.job.json")
    folder = root.path / str(pointer["job"]) if "job" in pointer else None
    end = read_json(folder / "end.json") if folder else {}
    heartbeat = folder / "heartbeat.json" if folder else None
    job_id = None if job.get("id") is None else str(job["id"])
    on_slurm = wave["executor"] == "slurm"
    alive = None if on_slurm else _alive([pointer, job.get("process") or {}])
    signs = Signs(
        ended=bool(end),
        scheduler=view.state_class(job_id) if on_slurm and job_id else None,
        scheduler_answered=view.answered,
        process_alive=alive,
        heartbeat_age=_age(heartbeat, now) if heartbeat else None,
        submitted_age=now - float(wave["created"]),
        phase=str(read_json(heartbeat).get("phase", "")) if heartbeat else "",
    )
    never: tuple[JobState, str] = ("lost", "was never submitted")
    state, detail = never if job.get("refused") else decide(signs, grace_s)
    work = tuple(Work(job["setup"], kernel, slot) for kernel, slot in job["work"])
    return JobView(
        job["stem"],
        job["setup"],
        wave["wave"],
        work,
        job_id,
        folder,
        state,
        detail,
        end,
        bool(job.get("refused")),
    )


def slurm_ids(root: RunRoot) -> list[str]:
    """Ids of Slurm jobs of the run that have left no end record."""
    found = []
    for wave in root.wave_records():
        for job in wave["jobs"] if wave["executor"] == "slurm" else []:
            pointer = read_json(root.waves / f"{job['stem']}.job.json")
            ended = "job" in pointer and (root.path / str(pointer["job"]) / "end.json").is_file()
            if job.get("id") is not None and not ended:
                found.append(str(job["id"]))
    return found


def survey(root: RunRoot, cluster: config.Cluster, runner: scheduler.Runner = scheduler.run) -> list[JobView]:
    """Every node job of every wave, with its state; at most one squeue and few sacct calls."""
    view = scheduler.slurm_view(slurm_ids(root), runner)
    return [
        _view(root, wave, job, view, cluster.unknown_grace_s)
        for wave in root.wave_records()
        for job in wave["jobs"]
    ]
