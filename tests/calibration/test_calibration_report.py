"""What a study says about a protocol and about its machine, from simulated runs of known kinds."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hpcagent_bench import protocols
from hpcagent_bench.calibration import report
from hpcagent_bench.calibration.store import Done, Pair, Step
from hpcagent_bench.calibration.study import Goal, calibration_stamps, steps
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import timing
from hpcagent_bench.report import calibration as pages

FACTS = {"node": "n1", "cpu": "a processor", "cores": [1], "sizes": "tiny"}
QUIET_LOOK: dict[str, Any] = {"causes": [], "note": "", "governor": "performance"}


def pair(candidate: np.ndarray, baseline: np.ndarray, **more: Any) -> Pair:
    """One input reduced as the judge reduces it."""
    mine, theirs = (tuple(int(t) for t in side) for side in (candidate, baseline))
    reduced = timing.reduce_mannwhitney_delta(mine, theirs, 0.1)
    return Pair(mine, theirs, reduced.ratio, reduced.significant, **more)


def study(stamp: str, condition: str, grades: int, *, process: float = 0.0, slow: float = 1.0) -> list[Done]:
    """Grades of four inputs: noise of 1 % a run and ``process`` a process, one side ``slow`` times slower."""
    rng = np.random.default_rng(7)
    done = []
    for turn in range(grades):
        pairs = []
        for _ in range(4):
            logs = rng.normal(0, 0.01, (2, 5)) + rng.normal(0, process, (2, 1) if process else (2, 5))
            candidate, baseline = 2e7 * np.exp(logs)
            pairs.append(pair(candidate * slow, baseline))
        done.append(Done(Step(turn, f"k{turn % 7}", condition, stamp), tuple(pairs), 1.5))
    return done


@pytest.fixture(scope="module")
def both() -> report.Report:
    """One protocol with layout noise a process, and one that times every run in a process of its own."""
    cells = [("mw4x5-aa", "quiet"), ("mwp4x5-aa", "quiet")]
    done = study("mw4x5-aa", "quiet", 100, process=0.01) + study("mwp4x5-aa", "quiet", 100)
    return report.report(FACTS, done, [QUIET_LOOK] * 12, cells)


def test_the_protocol_that_keeps_its_rate_is_told_from_the_one_that_does_not(both: report.Report) -> None:
    layout, sampled = both.findings
    assert both.keeping == {"quiet": ["mwp4x5"]}
    assert layout.false.low > layout.false.nominal == pytest.approx(38 / 252)
    assert (layout.inputs, sampled.inputs, layout.grades) == (400, 400, 100)
    assert layout.faster + layout.slower == layout.false.count


def test_the_spreads_planted_are_reported(both: report.Report) -> None:
    layout, sampled = both.findings
    assert layout.within == pytest.approx(0.01, rel=0.1)
    assert layout.between == pytest.approx(0.01, rel=0.2)
    assert layout.run == pytest.approx(0.01 * 2**0.5, rel=0.1)
    assert (sampled.within, sampled.between) == (None, None)  # one run a process tells them not apart
    assert sampled.run == pytest.approx(0.01, rel=0.1)
    assert sampled.smallest is not None
    assert layout.smallest is not None
    assert 1 < sampled.smallest < layout.smallest < 1.1


def test_the_mean_ratio_of_identical_code_is_one_within_its_interval(both: report.Report) -> None:
    for found in both.findings:
        assert found.ratio is not None
        assert found.ratio.low is not None
        assert found.ratio.high is not None
        assert found.ratio.low < 1 < found.ratio.high


def test_a_slot_that_favours_one_side_shows_as_bias() -> None:
    """The second slot 3 % slower on purpose: the ratio's interval leaves 1 and wins and losses part."""
    found = report.finding("mw4x5-aa", "quiet", study("mw4x5-aa", "quiet", 50, slow=1.03))
    assert found.ratio is not None
    assert found.ratio.high is not None
    assert found.ratio.high < 1
    assert found.slower > 10 * max(found.faster, 1)
    assert not found.false.kept


def test_suspect_inputs_are_no_false_credits_and_are_counted() -> None:
    fast, slow = np.array([1, 2, 3, 4, 5]) * 10**6, np.array([6, 7, 8, 9, 10]) * 10**6
    done = [
        Done(Step(0, "k", "quiet", "mw4x5-aa"), (pair(fast, slow), pair(fast, slow, suspect="x")), 1.0),
        Done(Step(1, "k", "quiet", "mw4x5-aa"), (Pair(failed="stopped at 1 s"),), 1.0),
        Done(Step(2, "j", "quiet", "mw4x5-aa"), (), 1.0, "score_error: no reference"),
    ]
    found = report.finding("mw4x5-aa", "quiet", done)
    assert (found.inputs, found.false.count, found.unmeasured) == (2, 1, 1)
    assert found.suspect == {"x": 1}
    assert found.faults == ("j: score_error: no reference",)


def test_an_unstable_machine_is_flagged_with_its_cause_and_a_single_look_is_not() -> None:
    steal = {**QUIET_LOOK, "causes": ["steal"], "note": "node time of a timed core kept by the hypervisor 9%"}
    save = {**QUIET_LOOK, "governor": "powersave"}
    cells = [("mwp4x5-aa", "quiet")]
    done = study("mwp4x5-aa", "quiet", 3)
    found = report.report(FACTS, done, [steal] * 3 + [QUIET_LOOK] * 7, cells)
    assert found.unstable == ("steal in 3 of 10 looks",)
    assert "kept by the hypervisor" in found.notes[0]
    assert report.report(FACTS, done, [save] * 4, cells).unstable == ("governor powersave in 4 of 4 looks",)
    assert report.report(FACTS, done, [steal] + [QUIET_LOOK] * 19, cells).unstable == ()
    unknown = {**QUIET_LOOK, "governor": None}
    assert report.report(FACTS, done, [unknown] * 4, cells).unstable == ()


def test_the_page_says_in_words_who_keeps_the_rate(both: report.Report) -> None:
    text = "\n".join(pages.sentences(both))
    assert "mwp4x5 keeps the nominal rate, quiet" in text
    assert "mw4x5 credits more than nominal, quiet" in text
    assert "the node was itself in 12 looks" in text
    assert "below 500 inputs a rate a third too high often goes unseen" in text
    shown = io.StringIO()
    pages.print_report(both, Console(file=shown, width=200))
    assert "15.1%" in shown.getvalue()


def test_the_json_is_whole_and_plain(both: report.Report) -> None:
    again = json.loads(json.dumps(both.as_json()))
    assert again["keeping"] == {"quiet": ["mwp4x5"]}
    assert again["findings"][0]["false"]["of"] == 400
    assert again["machine"] == FACTS


def test_a_study_of_nothing_yet_reports_nothing() -> None:
    found = report.report(FACTS, [], [], [("mw4x5-aa", "quiet")])
    assert found.keeping == {"quiet": []}
    assert pages.sentences(found) == []
    pages.print_report(found, Console(file=io.StringIO(), width=200))


def test_protocols_are_named_by_what_they_calibrate() -> None:
    assert calibration_stamps([]) == tuple(
        s for s, p in protocols.REGISTRY.items() if p.role == "calibration"
    )
    assert calibration_stamps(["mwp4x5", "mwp4x5-aa"]) == ("mwp4x5-aa",)
    with pytest.raises(UserError, match="mw2x5"):
        calibration_stamps(["mw2x5"])
    with pytest.raises(UserError, match="did you mean"):
        calibration_stamps(["mwp4x6"])


def test_kernels_are_dealt_in_turn_and_a_kernels_steps_stay_together() -> None:
    goal = Goal(("mw4x5-aa", "mwp4x5-aa"), ("quiet", "busy"), 8)
    dealt = steps(["a", "b"], goal)
    first, second, third = next(dealt), next(dealt), next(dealt)
    assert [s.kernel for s in (*first, *second, *third)] == ["a"] * 4 + ["b"] * 4 + ["a"] * 4
    assert [(s.condition, s.stamp) for s in first] == [
        ("quiet", "mw4x5-aa"),
        ("quiet", "mwp4x5-aa"),
        ("busy", "mw4x5-aa"),
        ("busy", "mwp4x5-aa"),
    ]
    assert len({s.key for s in (*first, *second, *third)}) == 12
