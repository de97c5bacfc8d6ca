"""Gate 4: a fresh build on one core, twice, against both references, and on a seed of its own."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from hpcagent_bench.harness import anticheat, sandbox
from hpcagent_bench.harness.building import builds
from hpcagent_bench.harness.checks import reverify
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.references import JudgeFault
from tests.support.gate_rig import KERNEL, built, gate, judge, submission, submit, version

GATE = "independent_verify"


def test_the_honest_source_passes(context: GradingContext) -> None:
    rejection, grading = gate(context, GATE, version())
    assert rejection is None
    assert grading.rebuilt is not None
    assert grading.build is not None
    assert grading.rebuilt.digest == grading.build.digest
    assert grading.rebuilt.library != grading.build.library
    assert grading.notes == ["dual oracle not applied: this judge does not run numba"]


def test_two_runs_that_differ_are_refused(context: GradingContext) -> None:
    # each process takes a side by the clock: of twelve tries both processes agree in all with 2 ** -12
    flips = (
        "struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); if (now.tv_nsec / 64 & 1) area[0] += 1.0;"
    )
    source, reasons = version(after=flips), set()
    with built(context, submission(source)) as grading:
        for _ in range(12):
            rejection = anticheat.independent_verify(grading)
            assert grading.untimed is not None
            grading.untimed.close()
            grading.untimed = None
            if rejection is not None:
                assert (rejection.gate, rejection.status) == (GATE, "incorrect")
                reasons.add(rejection.reason.partition(" elements")[0])
    assert any("two runs differ: area is wrong in 1 of" in reason for reason in reasons), reasons


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_an_answer_that_depends_on_the_number_of_threads_is_refused() -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))[:2]
    with judge(cores) as context:
        verdict = submit(context, version(after="if (omp_get_max_threads() == 1) area[1] = 0.5;"))
        assert verdict.status == "incorrect"
        assert verdict.reason.startswith(
            "independent_verify: the public draw at preset tiny: area is wrong in 1"
        )
        twin = version(after="if (omp_get_max_threads() == 1) area[1] += 0.0;")
        assert submit(context, twin).status == "ok"


def test_a_build_that_comes_out_otherwise_is_only_noted(context: GradingContext, tmp_path: Path) -> None:
    with built(context, submission(version())) as grading:
        other = sandbox.build(
            version(before="static volatile int n; n++;"), "c", KERNEL.symbol, tmp_path, timeout_s=60
        )
        grading.rebuilt = other
        assert anticheat.independent_verify(grading) is None
        assert "the fresh rebuild differs in its bytes from the graded build" in grading.notes


def test_a_rebuild_that_answers_otherwise_is_refused(context: GradingContext, tmp_path: Path) -> None:
    with built(context, submission(version())) as grading:
        grading.rebuilt = sandbox.build(
            version(after="area[3] = 0.0;"), "c", KERNEL.symbol, tmp_path, timeout_s=60
        )
        rejection = anticheat.independent_verify(grading)
        assert rejection is not None
        assert rejection.reason.startswith(
            "independent_verify: the public draw at preset tiny: area is wrong"
        )


def test_a_rebuild_that_fails_is_refused(context: GradingContext) -> None:
    with built(context, submission(version())) as grading:
        assert grading.rebuilt is not None
        grading.rebuilt = dataclasses.replace(
            grading.rebuilt, ok=False, library=None, log="k.c:1:1: error: no"
        )
        rejection = anticheat.independent_verify(grading)
        assert rejection is not None
        assert rejection.reason == "independent_verify: the fresh rebuild failed: k.c:1:1: error: no"


def test_a_source_that_knows_the_public_draw_fails_on_the_third_seed(
    context: GradingContext, tmp_path: Path
) -> None:
    with built(context, submission(version())) as grading:
        case = reverify.public_case(context, grading)
        bench = anticheat.bench_of(grading)
        with bench.drawn(case) as drawn:
            first = float(drawn.draw.arrays["x"][0])
        knows = version(after=f"if (x[0] != {first.hex()}) area[0] = 1.0;")
        bench.close()
        grading.untimed = None
        grading.rebuilt = sandbox.build(knows, "c", KERNEL.symbol, tmp_path, timeout_s=60)
        rejection = anticheat.independent_verify(grading)
    assert rejection is not None
    assert rejection.reason.startswith(
        "independent_verify: a further draw at preset tiny: area is wrong in 1 of"
    )


def test_the_third_seed_is_salted_and_its_own(context: GradingContext) -> None:
    with built(context, submission(version())) as grading:
        seeds = {reverify.third_case(context, grading).value_seed for _ in range(3)}
        public = reverify.public_case(context, grading)
    assert len(seeds) == 3
    assert public.value_seed == public.structural_seed == context.settings.seeds.input_dist
    assert not seeds & {11, 22, 33, public.value_seed}


def test_references_that_contradict_each_other_are_the_judges_fault(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, asked = context.references.start, []
    wrong = submission(version(after="area[2] = 0.25;"))

    def other(kernel: object, kind: str, *rest: object, **more: object) -> object:
        asked.append(kind)
        if kind == "c":
            return start(KERNEL, "c")
        return builds.start_candidate(liar)

    monkeypatch.setattr(context.settings.measurement.denominator, "loop_level_reasoning", "best-of(numba,c)")
    context.dual_oracle.clear()
    with built(context, wrong) as liar, built(context, submission(version())) as grading:
        monkeypatch.setattr(context.references, "start", other)
        with pytest.raises(JudgeFault, match="contradict each other: numba: area is wrong in 1 of"):
            anticheat.independent_verify(grading)
    assert asked == ["c", "numba"]
    assert context.dual_oracle == {}


def test_the_other_reference_is_asked_once_a_kernel(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context.settings.measurement.denominator, "loop_level_reasoning", "best-of(numba,c)")
    context.dual_oracle.clear()
    start, asked = context.references.start, []

    def counted(kernel: object, kind: str, *rest: object, **more: object) -> object:
        asked.append(kind)
        return start(KERNEL, kind)

    monkeypatch.setattr(context.references, "start", counted)
    for _ in range(2):
        rejection, grading = gate(context, GATE, version())
        assert rejection is None
        assert grading.notes == []
    assert sorted(asked) == ["c", "c", "numba"]
    assert list(context.dual_oracle.values()) == [""]


def test_a_reference_that_cannot_answer_is_noted(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context.settings.measurement.denominator, "loop_level_reasoning", "best-of(numba,c)")
    context.dual_oracle.clear()
    start = context.references.start

    def lost(kernel: object, kind: str, *rest: object, **more: object) -> object:
        if kind == "numba":
            raise JudgeFault("it does not compile")
        return start(KERNEL, kind)

    monkeypatch.setattr(context.references, "start", lost)
    rejection, grading = gate(context, GATE, version())
    assert rejection is None
    assert grading.notes == ["dual oracle not applied: numba cannot answer (it does not compile)"]
    context.dual_oracle.clear()
