"""The slack between the clocks inside and outside a call, by hand."""

import pytest

from hpcagent_bench.harness.transport import UNKNOWN_NS, Transport, runner_of


def test_slack_is_the_references_second_widest_gap_on_the_input_plus_the_margin() -> None:
    slack = Transport().slack_ns("native", {"c": [20_000, 24_000, 9_031_000, 22_000, 21_000]}, 50_000)
    assert slack == 74_000


def test_gaps_of_the_other_runner_do_not_count_where_the_same_one_ran() -> None:
    gaps = {"c": [20_000], "numba": [200_000]}
    assert Transport().slack_ns("native", gaps, 0) == 20_000
    assert Transport().slack_ns("python", gaps, 0) == 200_000


def test_runner_never_seen_is_given_what_is_known_of_none() -> None:
    assert Transport().slack_ns("python", {"c": [20_000]}, 0) == UNKNOWN_NS
    assert Transport().slack_ns("native", {"numba": [900_000]}, 0) == 900_000


def test_machine_that_was_busy_a_while_ago_keeps_its_upper_decile() -> None:
    transport = Transport()
    # nine delayed calls among sixty: the upper decile lies among them
    transport.note({"c": [20_000] * 51 + [3_000_000] * 9})
    assert transport.slack_ns("native", {"c": [20_000] * 5}, 50_000) == pytest.approx(3_050_000)
    transport.note({"c": [20_000] * 64})  # quiet again
    assert transport.slack_ns("native", {"c": [20_000] * 5}, 50_000) == pytest.approx(70_000)


def test_few_gaps_are_no_quantile() -> None:
    transport = Transport()
    transport.note({"c": [5_000_000] * 9})
    assert transport.slack_ns("native", {"c": [20_000]}, 0) == 20_000


def test_interpreted_references_answer_through_the_python_runner() -> None:
    assert [runner_of(kind) for kind in ("c", "c-autopar", "vendored", "numba", "numpy")] == [
        *("native", "native", "native"),
        *("python", "python"),
    ]
