"""A final grade as a whole: which calls are graded, and that the first failing gate ends it."""

from __future__ import annotations

from typing import Any

import pytest

from hpcagent_bench.harness import anticheat, grade_under
from hpcagent_bench.harness.building import builds
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child
from tests.support.gate_rig import submission, submit, version


def test_every_call_of_a_submit_but_the_sanitized_one_is_graded(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Child] = []
    calls: list[Child] = []
    start, call = builds.start_candidate, Child.call

    def recorded(*args: Any, **more: Any) -> Child:
        started.append(start(*args, **more))
        return started[-1]

    def counted(self: Child, *args: Any, **more: Any) -> Any:
        calls.append(self)
        return call(self, *args, **more)

    monkeypatch.setattr(anticheat, "start_candidate", recorded)
    monkeypatch.setattr(Child, "call", counted)
    assert submit(context, version()).status == "ok"
    per_process = [sum(one is child for one in calls) for child in started]
    # four inputs of a warm-up, five runs and the canonical call; five held-out cases; the re-verification
    assert per_process[-3:] == [5, 1, 2]
    assert per_process[:-3].count(7) == 4  # a disturbed input is measured again
    # who is wrong in 30 % of its calls passes about once in 400 000 submits
    assert 0.7 ** sum(per_process) < 3e-6


@pytest.mark.parametrize(
    ("after", "gate", "status"),
    [
        ("area[0] += 1.0; if (LEN_1D < 4096) abort();", "rep-verify", "incorrect"),
        ("if (LEN_1D < 4096) area[0] += 1.0;", "size_class_sweep", "overfit"),
    ],
)
def test_the_first_failing_gate_ends_the_grade(
    context: GradingContext, after: str, gate: str, status: str
) -> None:
    overrun = (
        "double *t = (double *)malloc(8); volatile double v = ((volatile double *)t)[1]; (void)v; free(t);"
    )
    verdict = submit(context, version(before=overrun, after=after))
    assert verdict.status == status
    assert gate in verdict.reason
    assert not verdict.solved


def test_a_reason_tells_no_seed_and_no_value_of_a_reference(context: GradingContext) -> None:
    verdict = submit(context, version(after="if (LEN_1D < 4096) area[5] = 0.125;"))
    assert verdict.reason == "size_class_sweep: h5 at preset S: area is wrong in 1 of 512 elements"


def test_a_preview_runs_no_gate_of_finals(context: GradingContext) -> None:
    source = version(after="if (LEN_1D < 4096) area[0] += 1.0;")
    verdict = grade_under.score_grade(context, submission(source))
    assert (verdict.status, len(verdict.inputs)) == ("ok", 2)
    assert not {"held-out", "re-verify", "sanitize"} & set(verdict.phases)
