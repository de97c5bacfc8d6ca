"""Owed work packed into node jobs, and node jobs into array jobs (pure functions)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from experiments.study import StudySetup, partition_of
from hpcagent_bench import config
from hpcagent_bench.episodes import Work
from hpcagent_bench.owed import OwedPlan

T = TypeVar("T")

JUDGE_START_S = 60
"""What starting, laying out and merging a node job may take, in the upper bound of its time."""


@dataclass(frozen=True)
class NodeJob:
    """The work of one node: some kernels of one setup. ``task`` counts within the wave, from 1."""

    setup: str
    task: int
    work: tuple[Work, ...]


@dataclass(frozen=True)
class ArrayJob:
    """Node jobs of one setup that are submitted together; a task's array index is its position."""

    setup: str
    part: int
    jobs: tuple[NodeJob, ...]


@dataclass(frozen=True)
class Plan:
    """What a launch would do. Times in seconds, tokens None when nothing bounds them."""

    work: tuple[Work, ...]
    owed: OwedPlan
    arrays: tuple[ArrayJob, ...]
    seconds_by_partition: dict[str, int]
    wall_seconds: int
    max_tokens: int | None

    @property
    def node_seconds(self) -> int:
        """Of all nodes together."""
        return sum(self.seconds_by_partition.values())

    @property
    def jobs(self) -> tuple[NodeJob, ...]:
        """Every node job of the wave."""
        return tuple(job for array in self.arrays for job in array.jobs)


def seconds(time: str) -> int:
    """``HH:MM:SS`` or ``D-HH:MM:SS`` in seconds."""
    days, _, clock = time.rpartition("-")
    hours, minutes, secs = (int(part) for part in clock.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + secs


def chunks(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    """``items`` in order, in pieces of at most ``size``."""
    return [tuple(items[i : i + size]) for i in range(0, len(items), size)]


def pack(work: Iterable[Work], problems_per_job: Callable[[str], int]) -> tuple[NodeJob, ...]:
    """Node jobs, none mixing two setups nor holding more than its setup allows; the order of work is kept."""
    jobs: list[NodeJob] = []
    for setup, group in groupby(work, key=lambda piece: piece.setup):
        for piece in chunks(list(group), problems_per_job(setup)):
            jobs.append(NodeJob(setup, len(jobs) + 1, piece))
    return tuple(jobs)


def arrays(jobs: Iterable[NodeJob], max_array_size: int) -> tuple[ArrayJob, ...]:
    """One array a setup, split so that no index exceeds ``max_array_size - 1`` (Slurm's own rule)."""
    found: list[ArrayJob] = []
    for setup, group in groupby(jobs, key=lambda job: job.setup):
        parts = chunks(list(group), max_array_size)
        found += [ArrayJob(setup, number, part) for number, part in enumerate(parts, 1)]
    return tuple(found)


def job_seconds(pieces: int, study: config.Study, partition: config.Partition, grade_s: float) -> int:
    """Upper bound of one node job: agents in turns of ``workers``, each at its deadline plus one grade."""
    turns = -(-pieces // partition.workers)
    bound = JUDGE_START_S + turns * (study.budgets.timeout_s + grade_s)
    return int(min(bound, seconds(partition.time)))


def plan(
    work: Iterable[Work],
    owed: OwedPlan,
    root: config.Root,
    setups: Mapping[str, StudySetup],
    max_array_size: int,
) -> Plan:
    """The node jobs of what is owed of ``work``, with upper bounds of time and tokens; nothing is touched.

    ``wall_seconds`` assumes that the scheduler grants every node at once, or one after another where node
    jobs share a host (cluster.exclusive_host).
    """
    places = {name: partition_of(root, setup.row.device) for name, setup in setups.items()}
    jobs = pack((item.work for item in owed.owed), lambda setup: places[setup].problems_per_job)
    grade_s = root.judge.timeouts.kernel_s
    times = [job_seconds(len(job.work), root.study, places[job.setup], grade_s) for job in jobs]
    together = sum(times) if root.cluster.exclusive_host else max(times, default=0)
    by_partition: dict[str, int] = {}
    for job, time in zip(jobs, times, strict=True):
        name = places[job.setup].name
        by_partition[name] = by_partition.get(name, 0) + time
    asking = sum(setups[item.work.setup].harness.needs_model for item in owed.owed)
    cap = root.study.budgets.max_tokens
    tokens = 0 if not asking else None if cap is None else cap * asking
    return Plan(tuple(work), owed, arrays(jobs, max_array_size), by_partition, together, tokens)
