"""Untimed cases: how large they are, who answers them, and whose fault it is when nobody does."""

from __future__ import annotations

import dataclasses

import pytest

from hpcagent_bench import config
from hpcagent_bench.harness import anticheat, hidden_tests
from hpcagent_bench.harness.checks import untimed
from hpcagent_bench.harness.checks.untimed import Untimed
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child, Outcome
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.seeds import GradingSeeds
from tests.support.gate_rig import KERNEL, built, grading_of, submission, version


def at(sizes: config.Sizes) -> GradingContext:
    return GradingContext(config.Judge(), sizes, (0,), GradingSeeds(1, 2, 3))


def test_the_credited_rung_runs_the_presets_named() -> None:
    context = at(config.Sizes("xl"))
    cases = hidden_tests.hidden_cases(context, KERNEL, 1)
    assert [case.label for case in cases] == [
        *("h1 at preset XL", "h2 at preset M", "h3 at preset M", "h4 at preset L", "h5 at preset S")
    ]
    for case, preset in zip(cases, ("XL", "M", "M", "L", "S"), strict=True):
        assert {name: case.params[name] for name in KERNEL.presets[preset]} == KERNEL.presets[preset]


@pytest.mark.parametrize("bound", [12_288, 12_287 * 4, 2**20, 2_232_000_000])
def test_no_case_is_larger_than_the_rung(bound: int) -> None:
    context = at(config.Sizes("some", bound))
    for case in hidden_tests.hidden_cases(context, KERNEL, 1):
        assert KERNEL.input_bytes(case.params) <= bound
    name, sizes = untimed.sizes_at(context, KERNEL, "M")
    assert name == ("M" if bound == 2_232_000_000 else "some")
    assert KERNEL.input_bytes(sizes) <= bound
    assert untimed.sizes_at(context, KERNEL, "none such") == (
        "some",
        untimed.sizes_at(context, KERNEL, "XL")[1],
    )


def test_numba_answers_where_c_is_lost(context: GradingContext, monkeypatch: pytest.MonkeyPatch) -> None:
    start = context.references.start

    def without_c(kernel: object, kind: str, *rest: object) -> Child:
        if kind == "c":
            raise JudgeFault("no C today")
        return start(KERNEL, kind)

    monkeypatch.setattr(context.references, "start", without_c)
    bench = Untimed(grading_of(context, KERNEL))
    (case, *_) = hidden_tests.hidden_cases(context, KERNEL, 1)
    with bench.drawn(case) as drawn:
        x, y = drawn.draw.arrays["x"], drawn.draw.arrays["y"]
        assert bench.answers(drawn)["area"][1] == (x[1] + x[0]) * (y[1] - y[0])
    assert bench.answered_by == "numba"
    bench.close()


def test_without_any_reference_the_judge_is_at_fault(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> Child:
        raise JudgeFault("not today")

    with built(context, submission(version())) as grading:
        monkeypatch.setattr(context.references, "start", none)
        with pytest.raises(JudgeFault, match="no reference of polygon_area_terms can answer"):
            anticheat.held_out(grading)
    assert context.pool  # and the draw went back, or closing the pool would find it missing


def test_a_seal_that_fails_is_not_the_submissions_fault(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with built(context, submission(version())) as grading:
        bench = anticheat.bench_of(grading)
        child = bench.children["held-out"]
        monkeypatch.setattr(child, "call", lambda *_, **__: Outcome("refused", detail="seal: no namespaces"))
        with pytest.raises(JudgeFault, match="seal: no namespaces"):
            anticheat.held_out(grading)


def test_what_a_call_leaves_behind_is_told(context: GradingContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with built(context, submission(version())) as grading:
        bench = anticheat.bench_of(grading)
        child = bench.children["held-out"]
        call = child.call

        def changed(**found: str) -> None:
            monkeypatch.setattr(child, "call", lambda *a, **b: dataclasses.replace(call(*a, **b), **found))

        (case, *_) = hidden_tests.hidden_cases(context, KERNEL, 1)
        changed(fp_modes="flush to zero")
        assert bench.run(case, child) is None
        assert bench.run(case, child) is None
        assert grading.notes == ["floating-point modes changed and restored: flush to zero"]
        changed(overrun="area")
        failure = bench.run(case, child)
        assert failure is not None
        assert (failure.status, failure.detail) == ("wrong", "wrote past the end of area")


def test_every_process_ends_with_the_grade(context: GradingContext) -> None:
    with built(context, submission(version())) as grading:
        bench = anticheat.bench_of(grading)
        children = dict(bench.children)
        assert set(children) == {"held-out", "first", "second", "sanitized"}
        assert anticheat.held_out(grading) is None
        assert not children["held-out"].alive
        bench.close()
    assert not any(child.alive for child in children.values())
