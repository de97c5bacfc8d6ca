"""Gate 3: five cases nobody showed, at presets no larger than the timed rung, in a process of their own."""

from __future__ import annotations

import re

import pytest

from hpcagent_bench import protocols
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import anticheat, hidden_tests
from hpcagent_bench.harness.context import GradingContext
from tests.support.gate_rig import KERNEL, gate, submit, version

GATE = "size_class_sweep"
SPECIAL_CASES = {
    "right for declared magnitudes only": (
        "double top = 0.0; for (int64_t k = 0; k < 64; k++) { double v = x[k] < 0 ? -x[k] : x[k]; "
        "if (v > top) top = v; } if (top < 100.0) area[0] = 1.0;",
        r"size_class_sweep: h2 at preset tiny: area is wrong in 1 of \d+ elements",
    ),
    "right for mixed signs only": (
        "int negative = 0; for (int64_t k = 0; k < 64; k++) negative += x[k] < 0; "
        "if (negative == 0) area[LEN_1D - 1] = 0.0;",
        "size_class_sweep: h2 at preset tiny: area is wrong",
    ),
    "right up to the declared magnitude": (
        "for (int64_t k = 0; k < LEN_1D; k++) if (x[k] > 1000.0) area[k] = 0.0;",
        "size_class_sweep: h4 at preset tiny: area is wrong",
    ),
    "right for sizes of the timed rung only": (
        "if (LEN_1D < 4096) area[7] = 0.0;",
        "size_class_sweep: h5 at preset S: area is wrong in 1 of 512 elements",
    ),
    "crashes on what it was not tried on": (
        "if (LEN_1D < 4096) abort();",
        "size_class_sweep: h5 at preset S: crash: .*SIGABRT",
    ),
}


@pytest.mark.parametrize(("after", "reason"), SPECIAL_CASES.values(), ids=SPECIAL_CASES)
def test_a_special_case_of_the_timed_inputs_is_overfit(
    context: GradingContext, after: str, reason: str
) -> None:
    verdict = submit(context, version(after=after))
    assert (verdict.status, verdict.solved) == ("overfit", False)
    assert re.match(reason, verdict.reason), verdict.reason
    assert all(one.result.correct for one in verdict.inputs)
    assert len(verdict.inputs) == 4


def test_the_honest_twin_passes(context: GradingContext) -> None:
    twin = version(before="double top = 0.0; for (int64_t k = 0; k < 64; k++) if (x[k] > top) top = x[k];")
    verdict = submit(context, twin)
    assert (verdict.status, verdict.reason, verdict.solved) == ("ok", "", True)


def test_a_preview_has_no_held_out_cases() -> None:
    roles = {gate.name: gate.roles for gate in anticheat.GATES}
    assert list(roles) == ["build", "timed_calls", GATE, "independent_verify", "sanitizers"]
    final: set[protocols.Role] = {"final"}
    assert roles[GATE] == roles["independent_verify"] == roles["sanitizers"] == final
    assert {"preview", "final"} <= roles["build"]
    assert {"preview", "final"} <= roles["timed_calls"]


def test_presets_labels_and_configurations_rotate(context: GradingContext) -> None:
    cases = hidden_tests.hidden_cases(context, KERNEL, 5)
    assert [case.label for case in cases] == [
        *(f"h{k} at preset tiny" for k in (1, 2, 3, 4)),
        "h5 at preset S",
    ]
    rung = context.sizes.bytes
    assert rung is not None
    assert all(KERNEL.input_bytes(case.params) <= rung for case in cases)
    several = next(k for k in map(spec.load, spec.discover()) if 1 < len(k.configs) <= 5)
    knobs = [
        {name: case.params[name] for name in several.configs[0]}
        for case in hidden_tests.hidden_cases(context, several, 5)
    ]
    assert knobs == [several.configs[turn % len(several.configs)] for turn in range(5)]


def test_every_grade_meets_other_values(context: GradingContext) -> None:
    seeds = [case.value_seed for seed in (1, 2) for case in hidden_tests.hidden_cases(context, KERNEL, seed)]
    assert len(set(seeds)) == 10


def test_no_guillotine_falls_on_a_held_out_case(context: GradingContext) -> None:
    context.settings.timeouts.guillotine_floor_s = 0.001
    try:
        slow = "if (LEN_1D < 4096) { double t = omp_get_wtime(); while (omp_get_wtime() < t + 0.2) {} }"
        rejection, _ = gate(context, GATE, version(before=slow))
    finally:
        context.settings.timeouts.guillotine_floor_s = 1.0
    assert rejection is None


def test_the_whole_budget_still_binds(context: GradingContext) -> None:
    context.settings.timeouts.kernel_s_override = 0.3
    try:
        rejection, _ = gate(
            context, GATE, version(before="if (LEN_1D < 4096) for (;;) { *(volatile int *)workspace; }")
        )
    finally:
        context.settings.timeouts.kernel_s_override = 10.0
    assert rejection is not None
    assert (rejection.status, rejection.gate) == ("overfit", GATE)
    assert "h5 at preset S: " in rejection.reason
