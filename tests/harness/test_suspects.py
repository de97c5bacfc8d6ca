"""Which timings cannot be believed: each rule on inputs made by hand, an honest twin beside each."""

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest

from hpcagent_bench import config
from hpcagent_bench.harness import metric, timing
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.machine.node import NodeWatch
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.timed import suspects
from hpcagent_bench.harness.timed.candidate_side import CandidateRuns
from hpcagent_bench.harness.timed.race import RaceResult
from hpcagent_bench.harness.timed.transport import Gap, Transport

DISAGREE = "the clocks inside and outside disagree"
CELL = metric.InputCell(0, "1", "tiny", "aligned", {"LEN_1D": 8}, {})
MS, US = 1_000_000, 1_000


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[GradingContext]:
    monkeypatch.setattr(NodeWatch, "peak_gbps", 100.0)
    made = GradingContext(config.Judge(), config.Sizes("tiny", 2**16), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


def reference_gaps() -> dict[str, tuple[Gap, ...]]:
    """A quiet machine's: 22 to 26 us by the wall, 12 to 16 by CPU time, 20 to load."""
    return {"c": tuple(Gap((22 + i) * US, (12 + i) * US, 20 * US) for i in range(5))}


def measured(
    inside: list[int],
    *,
    wall: list[int] | None = None,
    cpu: list[int] | None = None,
    load: list[int] | None = None,
    baseline: int = 20 * MS,
    slack: Gap | None = None,
    **more: Any,
) -> InputResult:
    """An input of five runs; the reference took ``baseline``. Gaps default to the reference's middle ones."""
    walls, cpus, loads = (
        given or [value] * 5 for given, value in ((wall, 24 * US), (cpu, 14 * US), (load, 20 * US))
    )
    runs = CandidateRuns(
        inside,
        [i + gap for i, gap in zip(inside, walls, strict=True)],
        [i + gap for i, gap in zip(inside, cpus, strict=True)],
        [Gap(*gaps) for gaps in zip(walls, cpus, loads, strict=True)],
    )
    theirs = tuple(baseline + i for i in range(5))
    race = RaceResult({"c": theirs}, "c", "c", "default", {}, {}, reference_gaps(), {"c": baseline})
    allowed = slack or Transport().slack("native", race.gaps, 50 * US)
    reduction = timing.reduce_mannwhitney_delta(inside, theirs)
    return InputResult(CELL, runs, race, reduction, more.pop("bytes_moved", 8 * MS), slack=allowed, **more)


def test_honest_input_is_not_suspect(context: GradingContext) -> None:
    assert suspects.suspect_timing(measured([10 * MS] * 5), context) == ""


def hidden(inside: int, nanoseconds: int, **more: Any) -> InputResult:
    """One core's work, of which every run keeps ``nanoseconds`` from its clock."""
    return measured([inside] * 5, wall=[24 * US + nanoseconds] * 5, cpu=[14 * US + nanoseconds] * 5, **more)


def test_clock_that_runs_slow_by_more_than_the_slack_is_caught(context: GradingContext) -> None:
    """20 ms a call, the clock patched to show 1 % less: 200 us are missing, some 50 are not noticed."""
    skewed = hidden(20 * MS - 200 * US, 200 * US)
    assert skewed.slack == Gap(81_250, 68_750, 75_000)
    assert suspects.suspect_timing(skewed, context) == DISAGREE
    assert suspects.suspect_timing(hidden(20 * MS - 40 * US, 40 * US), context) == ""


def test_hidden_work_is_seen_on_a_busy_machine_too_if_one_core_did_it(context: GradingContext) -> None:
    """Answers come milliseconds late there, on both sides, but waiting takes no CPU time."""
    busy = Gap(5 * MS, 70 * US, 70 * US)
    late = measured([20 * MS] * 5, wall=[8 * MS] * 5, slack=busy)
    assert suspects.suspect_timing(late, context) == ""
    assert (
        suspects.suspect_timing(
            measured([20 * MS] * 5, wall=[8 * MS] * 5, cpu=[2 * MS] * 5, slack=busy), context
        )
        == DISAGREE
    )


def test_clock_skewed_by_less_than_answers_wait_is_seen_on_one_core(context: GradingContext) -> None:
    """2 ms of 4 are hidden where answers wait up to 5: CPU time alone proves it."""
    busy = Gap(5 * MS, 70 * US, 70 * US)
    assert suspects.suspect_timing(hidden(2 * MS, 2 * MS, slack=busy), context) == DISAGREE


def test_candidate_on_several_cores_is_bound_by_the_wall_clock(context: GradingContext) -> None:
    """Its CPU time says nothing: twice the wall time on two cores is honest."""
    context.cores = (0, 1)
    assert suspects.suspect_timing(measured([20 * MS] * 5, cpu=[20 * MS] * 5), context) == ""
    skewed = measured([20 * MS] * 5, cpu=[20 * MS] * 5, wall=[300 * US] * 5)
    assert suspects.suspect_timing(skewed, context) == DISAGREE
    busy = Gap(5 * MS, 70 * US, 70 * US)
    assert suspects.suspect_timing(measured([20 * MS] * 5, cpu=[20 * MS] * 5, slack=busy), context) == ""
    halved = measured([MS] * 5, cpu=[MS + 600 * US] * 5, wall=[600 * US] * 5, slack=busy)
    assert suspects.suspect_timing(halved, context) == DISAGREE  # 2.6 ms of CPU time in 1 ms on two cores


def test_clock_that_leaves_out_waiting_is_caught_where_much_is_left_out(context: GradingContext) -> None:
    """A clock of CPU time shows no preemption: beyond two time slices that is not believed."""
    assert suspects.suspect_timing(measured([20 * MS] * 5, wall=[11 * MS] * 5), context) == DISAGREE
    assert suspects.suspect_timing(measured([20 * MS] * 5, wall=[9 * MS] * 5), context) == ""
    busy = Gap(3 * MS, 65 * US, 70 * US)
    assert suspects.suspect_timing(measured([20 * MS] * 5, wall=[11 * MS] * 5, slack=busy), context) == ""


def test_two_late_answers_of_five_prove_nothing(context: GradingContext) -> None:
    few = [24 * US, 9 * MS, 24 * US, 4 * MS, 24 * US]
    assert suspects.clocks(measured([10 * MS] * 5, wall=few, cpu=few), context) == ""
    most = [24 * US, 9 * MS, 24 * US, 4 * MS, 5 * MS]
    assert suspects.clocks(measured([10 * MS] * 5, wall=most, cpu=most), context) == DISAGREE


def test_work_before_the_clock_starts_is_caught(context: GradingContext) -> None:
    ahead = measured([10 * MS] * 5, load=[300 * US] * 5)
    assert (
        suspects.suspect_timing(ahead, context)
        == "computed outside the clock, while its input was handed over"
    )
    assert suspects.suspect_timing(measured([10 * MS] * 5, load=[60 * US] * 5), context) == ""


def noisy(rng: random.Random, share: float, cores: int) -> tuple[Gap, ...]:
    """Five gaps: some 20 us, and with probability ``share`` a wait of milliseconds for a processor."""
    quiet = [int(rng.lognormvariate(9.9, 0.2)) for _ in range(5)]
    waits = [int(rng.expovariate(1 / (3 * MS))) if rng.random() < share else 0 for _ in range(5)]
    used = [rng.lognormvariate(9.7, 0.5) + (cores - 1) * 10 * MS for _ in range(5)]
    return tuple(Gap(q + w, u, 20 * US) for q, w, u in zip(quiet, waits, used, strict=True))


@pytest.mark.parametrize(("cores", "allowed"), [(1, 1), (2, 15)])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 0.6])
def test_busy_machine_rarely_makes_an_honest_input_suspect(
    context: GradingContext, share: float, cores: int, allowed: int
) -> None:
    """Of a thousand inputs at most one where one core computes, at most 15 where two do."""
    rng, known, alarms = random.Random(1), Transport(), 0
    for _ in range(1000):
        theirs = {"c": noisy(rng, share, 1)}
        slack = known.slack("native", theirs, 50 * US)
        known.note(theirs)
        mine = noisy(rng, share, cores)
        result = measured([10 * MS] * 5, slack=slack)
        result.runs.gaps[:] = mine
        context.cores = tuple(range(cores))
        alarms += bool(suspects.clocks(result, context))
    assert alarms <= (allowed if share else 0)


@pytest.mark.parametrize(
    ("cpu", "suspect"),
    [([14 * US] * 5, False), ([14 * US] * 4 + [10 * MS], True), ([14 * US] * 4 + [2 * MS], False)],
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
    """60 us of gain; one core's work may hide 69. 80 us are attested, and a loss claims nothing."""
    small, attested = measured([20 * MS - 60 * US] * 5), measured([20 * MS - 80 * US] * 5)
    assert small.reduction is not None
    assert small.reduction.significant
    assert suspects.note(small, context) == "gain of 60 us is below what the clocks attest (68.8 us)"
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


def test_input_measured_again_says_so(context: GradingContext) -> None:
    result = measured([10 * MS] * 5)
    result.runs.attempts = 3
    assert suspects.note(result, context) == "measured 3 times: CPU time alone spoke against it before"
