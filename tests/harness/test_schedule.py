"""The order of calls on one input, for protocols that sample inputs and for those that sample processes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcagent_bench import protocols
from hpcagent_bench.harness.timed import schedule

SEEDS = schedule.InputSeeds((10, 11, 12, 13, 14, 15), 99)
FIRST = (True, False, True, False, True)


def turns(protocol: protocols.Protocol) -> tuple[schedule.Turn, ...]:
    return schedule.turns(protocol, SEEDS, FIRST)


def test_input_sampled_runs_all_calls_in_one_process_and_repeats_no_draw() -> None:
    found = turns(protocols.FINAL)
    assert [t.name for t in found] == ["warm-up", "run 1", "run 2", "run 3", "run 4", "run 5", "canonical"]
    assert [t.seed for t in found] == [10, 11, 12, 13, 14, 15, 99]
    assert [t.opens for t in found] == [True] + [False] * 6
    assert [t.timed for t in found] == [False] + [True] * 5 + [False]


def test_run_sampled_gives_each_timed_run_a_process_and_a_warm_up() -> None:
    found = turns(protocols.PROCESS_FINAL)
    assert [t.seed for t in found] == [10, 11, 10, 12, 10, 13, 10, 14, 10, 15, 99]
    assert [t.opens for t in found] == [True, False] * 5 + [False]
    assert [t.name for t in found][:4] == ["warm-up of run 1", "run 1", "warm-up of run 2", "run 2"]
    assert schedule.processes(protocols.PROCESS_FINAL) == 5
    assert schedule.processes(protocols.FINAL) == 1


@pytest.mark.parametrize("stamp", sorted(protocols.REGISTRY))
def test_no_process_sees_a_draw_twice(stamp: str) -> None:
    process: list[int] = []
    for turn in turns(protocols.get(stamp)):
        process = [] if turn.opens else process
        assert turn.seed not in process
        process.append(turn.seed)


@given(st.integers(1, 30), st.integers())
def test_each_side_goes_first_in_half_of_the_runs(runs: int, seed: int) -> None:
    order = schedule.drawn_order(runs, random.Random(seed))
    assert len(order) == runs
    assert abs(2 * sum(order) - runs) <= 1


def test_order_is_drawn_anew_for_every_input() -> None:
    assert len({schedule.drawn_order(5) for _ in range(200)}) == 20  # C(5, 2) + C(5, 3)


def test_slower_second_slot_favours_neither_side() -> None:
    """A machine whose second slot takes 3 % longer: over many inputs both sides lose the same."""
    rng = random.Random(3)
    candidate = baseline = 0.0
    for _ in range(2000):
        for first in schedule.drawn_order(5, rng):
            candidate += 1.0 if first else 1.03
            baseline += 1.03 if first else 1.0
    assert candidate / baseline == pytest.approx(1.0, abs=5e-4)
