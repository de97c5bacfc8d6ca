"""The widest honest gaps between the clocks of a call, by hand."""

import pytest

from hpcagent_bench.harness import transport
from hpcagent_bench.harness.native_call import Outcome
from hpcagent_bench.harness.transport import UNKNOWN, Gap, Transport, runner_of


def walls(*values: float) -> tuple[Gap, ...]:
    return tuple(Gap(value, 10_000, 15_000) for value in values)


def test_gaps_of_a_call() -> None:
    """1 ms inside, 1.03 outside; 1.05 ms of CPU time, 0.01 of it after the answer, 0.02 before the call."""
    outcome = Outcome("ok", 1_000_000, 1_030_000, 1_050_000, late_cpu_ns=10_000, load_cpu_ns=20_000)
    assert transport.gap_of(outcome) == Gap(40_000, 50_000, 20_000)


def test_slack_is_the_references_second_widest_gap_on_the_input_plus_the_margin() -> None:
    gaps = {"c": walls(20_000, 24_000, 9_031_000, 22_000, 21_000)}
    assert Transport().slack("native", gaps, 50_000) == Gap(74_000, 60_000, 65_000)


def test_gaps_of_the_other_runner_do_not_count_where_the_same_one_ran() -> None:
    gaps = {"c": walls(20_000), "numba": walls(200_000)}
    assert Transport().slack("native", gaps, 0).wall == 20_000
    assert Transport().slack("python", gaps, 0).wall == 200_000


def test_runner_never_seen_is_given_what_is_known_of_none() -> None:
    assert Transport().slack("python", {"c": walls(20_000)}, 0) == UNKNOWN
    assert Transport().slack("native", {"numba": walls(900_000)}, 0).wall == 900_000
    assert Transport().slack("native", {}, 0) == UNKNOWN


def test_machine_that_was_busy_a_while_ago_keeps_its_upper_decile() -> None:
    known = Transport()
    # nine delayed calls among sixty: the upper decile lies among them
    known.note({"c": walls(*[20_000] * 51, *[3_000_000] * 9)})
    assert known.slack("native", {"c": walls(*[20_000] * 5)}, 50_000).wall == pytest.approx(3_050_000)
    known.note({"c": walls(*[20_000] * 64)})  # quiet again
    assert known.slack("native", {"c": walls(*[20_000] * 5)}, 50_000).wall == pytest.approx(70_000)


def test_few_gaps_are_no_quantile() -> None:
    known = Transport()
    known.note({"c": walls(*[5_000_000] * 9)})
    assert known.slack("native", {"c": walls(20_000)}, 0).wall == 20_000


def test_interpreted_references_answer_through_the_python_runner() -> None:
    assert [runner_of(kind) for kind in ("c", "c-autopar", "vendored", "numba", "numpy")] == [
        *("native", "native", "native"),
        *("python", "python"),
    ]
