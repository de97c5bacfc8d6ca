"""The widest honest gaps between the clocks of a call, by hand."""

import pytest

from hpcagent_bench.harness.native_call import Outcome
from hpcagent_bench.harness.timed import transport
from hpcagent_bench.harness.timed.transport import UNKNOWN, Gap, Transport, runner_of


def walls(*values: float) -> tuple[Gap, ...]:
    return tuple(Gap(value, 10_000, 15_000) for value in values)


def test_gaps_of_a_call() -> None:
    """1 ms inside, 1.03 outside; 1.05 ms of CPU time, 0.01 of it after the answer, 0.02 before the call."""
    outcome = Outcome("ok", 1_000_000, 1_030_000, 1_050_000, late_cpu_ns=10_000, load_cpu_ns=20_000)
    assert transport.gap_of(outcome) == Gap(40_000, 50_000, 20_000)


def test_slack_is_the_references_second_widest_gap_on_the_input_and_some_more() -> None:
    """24, 10 and 15 us, a quarter more, and 50 us."""
    gaps = {"c": walls(20_000, 24_000, 9_031_000, 22_000, 21_000)}
    assert Transport().slack("native", gaps, 50_000) == Gap(80_000, 62_500, 68_750)


def test_gaps_of_the_other_runner_do_not_count_where_the_same_one_ran() -> None:
    gaps = {"c": walls(20_000), "numba": walls(200_000)}
    assert Transport().slack("native", gaps, 0).wall == 25_000
    assert Transport().slack("python", gaps, 0).wall == 250_000


def test_runner_never_seen_is_given_what_is_known_of_none() -> None:
    allowed = Gap(*(value * 1.25 for value in UNKNOWN))
    assert Transport().slack("python", {"c": walls(20_000)}, 0) == allowed
    assert Transport().slack("native", {"numba": walls(900_000)}, 0).wall == 1_125_000
    assert Transport().slack("native", {}, 0) == allowed


def test_machine_that_was_busy_a_while_ago_keeps_its_upper_decile() -> None:
    known = Transport()
    # nine delayed calls among sixty: the upper decile lies among them
    known.note({"c": walls(*[20_000] * 51, *[3_000_000] * 9)})
    assert known.slack("native", {"c": walls(*[20_000] * 5)}, 50_000).wall == pytest.approx(3_800_000)
    known.note({"c": walls(*[20_000] * 64)})  # quiet again
    assert known.slack("native", {"c": walls(*[20_000] * 5)}, 50_000).wall == pytest.approx(75_000)


def test_preempted_calls_tell_nothing_of_cpu_time() -> None:
    """Four of five waited for milliseconds inside the call, where only the clock inside goes on."""
    gaps = {"c": tuple(Gap(20_000, cpu, 15_000) for cpu in (-4e6, 12_000, -2e6, -9e6, -1e6))}
    assert Transport().slack("native", gaps, 50_000).cpu == UNKNOWN.cpu * 1.25 + 50_000
    gaps["c"] = (*gaps["c"][:4], Gap(20_000, 8_000, 15_000))
    assert Transport().slack("native", gaps, 50_000).cpu == 60_000


def test_few_gaps_are_no_quantile() -> None:
    known = Transport()
    known.note({"c": walls(*[5_000_000] * 9)})
    assert known.slack("native", {"c": walls(20_000)}, 0).wall == 25_000


def test_interpreted_references_answer_through_the_python_runner() -> None:
    assert [runner_of(kind) for kind in ("c", "c-autopar", "vendored", "numba", "numpy")] == [
        *("native", "native", "native"),
        *("python", "python"),
    ]
