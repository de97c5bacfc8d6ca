"""Packing owed work into node jobs and arrays."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import waves
from experiments.compose import compose
from hpcagent_bench import config, owed
from hpcagent_bench.episodes import Work


@pytest.fixture(scope="module")
def root() -> config.Root:
    return compose(["+study=quickstart"]).root


def work(setup: str, count: int) -> list[Work]:
    return [Work(setup, f"k{i:04}") for i in range(count)]


def test_an_array_larger_than_the_site_allows_is_split() -> None:
    jobs = waves.pack(work("s", 1500), 1)
    split = waves.arrays(jobs, 1001)
    assert [len(array.jobs) for array in split] == [1001, 499]
    assert all(index <= 1000 for array in split for index in range(len(array.jobs)))
    assert Counter(job.work[0] for array in split for job in array.jobs) == Counter(work("s", 1500))


def test_no_job_and_no_array_mixes_setups() -> None:
    jobs = waves.pack([*work("a", 5), *work("b", 3)], 4)
    assert [(j.setup, j.task, len(j.work)) for j in jobs] == [("a", 1, 4), ("a", 2, 1), ("b", 3, 3)]
    assert [(a.setup, a.part, len(a.jobs)) for a in waves.arrays(jobs, 1001)] == [("a", 1, 2), ("b", 1, 1)]


@given(st.lists(st.integers(0, 40), max_size=5), st.integers(1, 9), st.integers(1, 7))
def test_packing_loses_nothing_and_repeats_nothing(counts: list[int], per_job: int, limit: int) -> None:
    wanted = [piece for n, count in enumerate(counts) for piece in work(f"s{n}", count)]
    split = waves.arrays(waves.pack(wanted, per_job), limit)
    assert [piece for array in split for job in array.jobs for piece in job.work] == wanted
    assert all(len(array.jobs) <= limit for array in split)
    assert all(0 < len(job.work) <= per_job for array in split for job in array.jobs)


@pytest.mark.parametrize(
    ("text", "seconds"), [("01:30:00", 5400), ("00:00:59", 59), ("2-00:00:00", 172800), ("100:00:01", 360001)]
)
def test_times(text: str, seconds: int) -> None:
    assert waves.seconds(text) == seconds


def test_the_plan_is_pure_and_bounded(root: config.Root) -> None:
    before = copy.deepcopy(root)
    wanted = work("a", 8) + work("b", 8)
    split = owed.plan(wanted, (), in_flight=[wanted[0]])
    first, second = waves.plan(wanted, split, root, 1001), waves.plan(wanted, split, root, 1001)
    assert first == second
    assert root == before
    assert wanted[0] not in {piece for job in first.jobs for piece in job.work}
    assert first.max_tokens == 0


def test_bounds_add_up_where_jobs_take_turns(root: config.Root) -> None:
    # One worker, 600 s an agent and 300 s a grade, 60 s around: 2 pieces make 1860 s.
    split = owed.plan(work("a", 2) + work("b", 2), ())
    plan = waves.plan([], split, root, 1001)
    assert (plan.node_seconds, plan.wall_seconds) == (3720, 3720)
    apart = copy.deepcopy(root)
    apart.cluster.exclusive_host = False
    assert waves.plan([], split, apart, 1001).wall_seconds == 1860


def test_tokens_are_bounded_by_the_cap_of_every_owed_episode(root: config.Root) -> None:
    paid = copy.deepcopy(root)
    paid.models["m"] = config.Model("m", "vendor/m")
    paid.study.budgets.max_tokens = 1000
    split = owed.plan(work("a", 3), ())
    assert waves.plan([], split, paid, 1001).max_tokens == 3000
    paid.study.budgets.max_tokens = None
    assert waves.plan([], split, paid, 1001).max_tokens is None
