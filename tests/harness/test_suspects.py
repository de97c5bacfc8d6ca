"""Which timings cannot be believed: each rule on inputs made by hand, an honest twin beside each."""

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest

from hpcagent_bench import config
from hpcagent_bench.harness import metric, suspects, timing
from hpcagent_bench.harness.candidate_side import CandidateRuns
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.node import NodeWatch
from hpcagent_bench.harness.race import RaceResult
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.transport import Transport

CELL = metric.InputCell(0, "1", "tiny", "aligned", {"LEN_1D": 8}, {})
MS, US = 1_000_000, 1_000
GAP = 25 * US


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[GradingContext]:
    monkeypatch.setattr(NodeWatch, "peak_gbps", 100.0)
    made = GradingContext(config.Judge(), config.Sizes("tiny", 2**16), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


def measured(
    inside: list[int],
    *,
    gaps: list[int] | None = None,
    baseline: int = 20 * MS,
    cpu: list[int] | None = None,
    late: list[int] | None = None,
    **more: Any,
) -> InputResult:
    """An input of five runs; the reference took ``baseline`` with gaps of 22 to 26 us."""
    outside = [i + g for i, g in zip(inside, gaps or [GAP] * 5, strict=True)]
    runs = CandidateRuns(inside, outside, cpu or inside, late or [0] * 5)
    theirs = tuple(baseline + i for i in range(5))
    race = RaceResult(
        {"c": theirs},
        "c",
        "c",
        "default",
        {},
        {},
        {"c": tuple((22 + i) * US for i in range(5))},
        {"c": baseline},
    )
    slack = Transport().slack_ns("native", race.gaps, 50 * US)
    reduction = timing.reduce_mannwhitney_delta(inside, theirs)
    fields: dict[str, Any] = {"bytes_moved": 8 * MS, "slack_ns": slack, **more}
    return InputResult(CELL, runs, race, reduction, **fields)


def test_honest_input_is_not_suspect(context: GradingContext) -> None:
    assert suspects.suspect_timing(measured([10 * MS] * 5), context) == ""


def test_clock_that_runs_slow_by_more_than_the_slack_is_caught(context: GradingContext) -> None:
    """20 ms a call, the clock patched to show 1 % less: 200 us are missing, 75 us are allowed."""
    shown = [20 * MS - 200 * US] * 5
    skewed = measured(shown, gaps=[GAP + 200 * US] * 5)
    assert skewed.slack_ns == 75 * US
    assert suspects.suspect_timing(skewed, context) == "the clocks inside and outside disagree"
    within = measured([20 * MS - 40 * US] * 5, gaps=[GAP + 40 * US] * 5)
    assert suspects.suspect_timing(within, context) == ""


def test_two_answers_delayed_by_preemption_prove_nothing(context: GradingContext) -> None:
    delayed = measured([10 * MS] * 5, gaps=[GAP, 9 * MS, GAP, 4 * MS, GAP])
    assert suspects.suspect_timing(delayed, context) == ""
    assert suspects.clocks(measured([10 * MS] * 5, gaps=[GAP, 9 * MS, GAP, 4 * MS, 5 * MS]), context)


def test_work_after_the_answer_counts_as_hidden_time(context: GradingContext) -> None:
    assert suspects.clocks(measured([10 * MS] * 5, late=[300 * US] * 5), context)
    assert not suspects.clocks(measured([10 * MS] * 5, late=[10 * US] * 5), context)


def noisy(rng: random.Random, share: float) -> list[int]:
    """Five gaps: some 20 us, and with probability ``share`` a delay of milliseconds."""
    quiet = [int(rng.lognormvariate(9.9, 0.2)) for _ in range(5)]
    return [g + (int(rng.expovariate(1 / (3 * MS))) if rng.random() < share else 0) for g in quiet]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.6])
def test_busy_machine_rarely_makes_an_honest_input_suspect(context: GradingContext, share: float) -> None:
    """Both sides' answers delayed alike: fewer than one in fifty, and none on a quiet machine."""
    rng, transport, alarms = random.Random(1), Transport(), 0
    for _ in range(1000):
        gaps = {"c": tuple(noisy(rng, share))}
        slack = transport.slack_ns("native", gaps, 50 * US)
        transport.note(gaps)
        input_ = measured([10 * MS] * 5, gaps=noisy(rng, share), slack_ns=slack)
        alarms += bool(suspects.clocks(input_, context))
    assert alarms <= (20 if share else 0)


@pytest.mark.parametrize(
    ("cpu", "suspect"),
    [([10 * MS] * 5, False), ([10 * MS] * 4 + [20 * MS], True), ([10 * MS] * 4 + [12 * MS], False)],
    ids=["one core", "two cores in one call", "within the clocks' reading"],
)
def test_any_call_with_more_cpu_time_than_its_cores_is_caught(
    context: GradingContext, cpu: list[int], suspect: bool
) -> None:
    found = suspects.suspect_timing(measured([10 * MS] * 5, cpu=cpu), context)
    assert found == ("more CPU time than 1 core(s) have" if suspect else "")


def test_process_found_on_another_core_is_suspect(context: GradingContext) -> None:
    result = measured([10 * MS] * 5)
    result.runs.strayed = frozenset({3})
    assert suspects.suspect_timing(result, context) == "ran on core 3, which it was not granted"


def test_outputs_written_faster_than_the_node_can_are_suspect(context: GradingContext) -> None:
    """800 MB in 1 ms is 800 GB/s; the node's cores write 100, twice that is allowed."""
    fast = measured([MS] * 5, bytes_changed=800 * MS)
    assert "800 GB/s, more than this node can" in suspects.suspect_timing(fast, context)
    assert suspects.suspect_timing(measured([MS] * 5, bytes_changed=190 * MS), context) == ""
    one = measured([4 * MS] * 4 + [MS], bytes_changed=800 * MS)  # a single run is enough
    assert suspects.suspect_timing(one, context)


def test_ratio_and_declared_bandwidth_bounds(context: GradingContext) -> None:
    assert suspects.suspect_timing(measured([9 * US] * 5, bytes_moved=8), context) == "ratio above 2000"
    assert suspects.suspect_timing(measured([MS] * 5, bytes_moved=10_601 * MS), context) == (
        "faster than 10600 GB/s"
    )
    assert suspects.suspect_timing(measured([MS] * 5, bytes_moved=10_600 * MS), context) == ""


def test_gain_below_the_slack_is_marked_or_suspect_as_configured(context: GradingContext) -> None:
    """60 us of gain, 75 us of slack; a gain of 80 us is attested, and a loss claims nothing."""
    small, attested = measured([20 * MS - 60 * US] * 5), measured([20 * MS - 80 * US] * 5)
    assert small.reduction is not None
    assert small.reduction.significant
    assert suspects.note(small, context) == "gain of 60 us is below what the clocks attest (75 us)"
    assert suspects.note(attested, context) == ""
    assert suspects.note(measured([30 * MS] * 5), context) == ""
    assert suspects.suspect_timing(small, context) == ""
    context.settings.record.unattested = "suspect"
    assert "below what the clocks attest" in suspects.suspect_timing(small, context)
    assert suspects.suspect_timing(attested, context) == ""


def test_answers_fast_only_when_warm_are_noted_with_both_ratios(context: GradingContext) -> None:
    cached = measured([MS] * 5)
    cached.runs.cold[:] = [16 * MS]
    assert cached.cold_ratio == pytest.approx(20 / 16)
    assert suspects.note(cached, context) == "cold ratio 1.25, warm 20"
    cached.runs.cold[:] = [MS + MS // 2]
    assert suspects.note(cached, context) == ""


def test_stopped_input_is_no_suspect_and_says_so(context: GradingContext) -> None:
    runs = CandidateRuns(stopped_at_ns=1e9)
    stopped = InputResult(CELL, runs, None, timing.reduce_stopped(1e8, 1e9), 8)
    assert suspects.suspect_timing(stopped, context) == ""
    assert suspects.note(stopped, context) == "stopped at 1 s, graded on one complete run"


def test_floating_point_modes_left_changed_are_noted(context: GradingContext) -> None:
    result = measured([10 * MS] * 5)
    changed = dataclasses.replace(result, runs=dataclasses.replace(result.runs, fp_modes="flush-to-zero"))
    assert suspects.note(changed, context) == "left floating-point modes changed: flush-to-zero"
