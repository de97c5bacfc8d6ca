"""Packing owed work into node jobs and arrays."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import study, waves
from experiments.compose import compose
from experiments.study import StudySetup
from hpcagent_bench import config, owed
from hpcagent_bench.episodes import Work


@pytest.fixture(scope="module")
def root() -> config.Root:
    return compose(["+study=quickstart"]).root


def work(setup: str, count: int) -> list[Work]:
    return [Work(setup, f"k{i:04}") for i in range(count)]


@pytest.fixture
def setups(root: config.Root) -> dict[str, StudySetup]:
    """Setups a and b of no model, and m that asks one on a GPU."""
    free = study.expand(root)[0]
    gpu = dataclasses.replace(free.row, device="gpu")
    asking = dataclasses.replace(free, row=gpu, harness=config.Harness("claude"))
    return {"a": free, "b": free, "m": asking}


def test_an_array_larger_than_the_site_allows_is_split() -> None:
    jobs = waves.pack(work("s", 1500), lambda setup: 1)
    split = waves.arrays(jobs, 1001)
    assert [len(array.jobs) for array in split] == [1001, 499]
    assert all(index <= 1000 for array in split for index in range(len(array.jobs)))
    assert Counter(job.work[0] for array in split for job in array.jobs) == Counter(work("s", 1500))


def test_no_job_and_no_array_mixes_setups() -> None:
    jobs = waves.pack([*work("a", 5), *work("b", 3)], lambda setup: 4)
    assert [(j.setup, j.task, len(j.work)) for j in jobs] == [("a", 1, 4), ("a", 2, 1), ("b", 3, 3)]
    assert [(a.setup, a.part, len(a.jobs)) for a in waves.arrays(jobs, 1001)] == [("a", 1, 2), ("b", 1, 1)]


@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 9), st.integers(1, 7))
def test_packing_loses_nothing_and_repeats_nothing(counts: list[int], per_job: int, limit: int) -> None:
    wanted = [piece for n, count in enumerate(counts) for piece in work(f"s{n}", count)]
    split = waves.arrays(waves.pack(wanted, lambda setup: per_job), limit)
    assert [piece for array in split for job in array.jobs for piece in job.work] == wanted
    assert all(len(array.jobs) <= limit for array in split)
    assert all(0 < len(job.work) <= per_job for array in split for job in array.jobs)


@pytest.mark.parametrize(
    ("text", "seconds"), [("01:30:00", 5400), ("00:00:59", 59), ("2-00:00:00", 172800), ("100:00:01", 360001)]
)
def test_times(text: str, seconds: int) -> None:
    assert waves.seconds(text) == seconds


def test_the_plan_is_pure_and_bounded(root: config.Root, setups: dict[str, StudySetup]) -> None:
    before = copy.deepcopy(root)
    wanted = work("a", 8) + work("b", 8)
    split = owed.plan(wanted, (), in_flight=[wanted[0]])
    first, second = (waves.plan(wanted, split, root, setups, 1001) for _ in range(2))
    assert first == second
    assert root == before
    assert wanted[0] not in {piece for job in first.jobs for piece in job.work}
    assert first.max_tokens == 0


def test_bounds_add_up_where_jobs_take_turns(root: config.Root, setups: dict[str, StudySetup]) -> None:
    # One worker, 600 s an agent and 300 s a grade, 60 s around: 2 pieces make 1860 s.
    split = owed.plan(work("a", 2) + work("b", 2), ())
    plan = waves.plan([], split, root, setups, 1001)
    assert (plan.node_seconds, plan.wall_seconds) == (3720, 3720)
    apart = copy.deepcopy(root)
    apart.cluster.exclusive_host = False
    assert waves.plan([], split, apart, setups, 1001).wall_seconds == 1860


def test_tokens_are_bounded_by_the_cap_of_every_episode_that_asks_a_model(
    root: config.Root, setups: dict[str, StudySetup]
) -> None:
    paid = copy.deepcopy(root)
    paid.study.budgets.max_tokens = 1000
    split = owed.plan(work("a", 5) + work("m", 3), ())
    assert waves.plan([], split, paid, setups, 1001).max_tokens == 3000
    paid.study.budgets.max_tokens = None
    assert waves.plan([], split, paid, setups, 1001).max_tokens is None
    assert waves.plan([], owed.plan(work("a", 5), ()), paid, setups, 1001).max_tokens == 0


def test_each_device_has_its_partition(root: config.Root, setups: dict[str, StudySetup]) -> None:
    mixed = copy.deepcopy(root)
    mixed.partitions["gpu"] = config.Partition("h20", workers=4, problems_per_job=4, time="99:00:00")
    plan = waves.plan([], owed.plan(work("a", 2) + work("m", 5), ()), mixed, setups, 1001)
    assert [len(job.work) for job in plan.jobs] == [2, 4, 1]
    assert plan.seconds_by_partition == {"local": 1860, "h20": 960 + 960}
