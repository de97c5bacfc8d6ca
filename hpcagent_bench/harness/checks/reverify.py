"""Gate 4: a fresh build on one core, in processes of its own, must answer the same (scoring.md 1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from hpcagent_bench.corpus import fuzz
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness import rep_variation
from hpcagent_bench.harness.checks.untimed import Case, Drawn, Failure, Untimed, note, params_at
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.submission import Grading, Rejection

GATE = "independent_verify"
PRESET = "M"


def public_case(context: GradingContext, grading: Grading, preset: str = PRESET) -> Case:
    """The draw everybody can make: preset M or the smaller rung, first configuration, seeds.input_dist."""
    name, params = params_at(context, grading.submission.kernel, preset)
    seed = context.settings.seeds.input_dist
    return Case(f"the public draw at preset {name}", params, seed, seed)


def third_case(context: GradingContext, grading: Grading) -> Case:
    """A draw from the third secret seed, salted, that no route ever showed."""
    kernel = grading.submission.kernel
    name, params = params_at(context, kernel, PRESET)
    salted = rep_variation.salted(context.seeds.third, rep_variation.fresh_nonce())
    seed = fuzz.pool_seed(salted, kernel.name, name, context.settings.service.datatype, GATE, 0)
    return Case(f"a further draw at preset {name}", params, seed, seed)


def verify(grading: Grading, bench: Untimed) -> Rejection | None:
    """Run the rebuild's two processes: both on the public draw, the second on the third seed as well.

    Raises JudgeFault where the two compiled references contradict each other.
    """
    assert grading.build is not None
    assert grading.rebuilt is not None
    if grading.rebuilt.digest != grading.build.digest:
        note(grading, "the fresh rebuild differs in its bytes from the graded build")
    with bench.candidate("second") as second:
        with bench.candidate("first") as first, bench.drawn(public_case(grading.context, grading)) as drawn:
            failure = _twice(bench, drawn, first, second) or _both(bench, drawn, first, second)
        if failure is None:
            case = third_case(grading.context, grading)
            found = bench.run(case, second)
            failure = f"{case.label}: {found.detail}" if found else None
    return None if failure is None else rejection(failure)


def rejection(reason: str) -> Rejection:
    """The gate's refusal."""
    return Rejection(GATE, "incorrect", f"{GATE}: {reason}")


def _twice(bench: Untimed, drawn: Drawn, first: Child, second: Child) -> str | None:
    """Call both processes on one draw; their answers must agree."""
    for which, child in (("first", first), ("second", second)):
        found = bench.call(drawn, child)
        if found is not None:
            return f"{drawn.case.label}, {which} run: {found.detail}"
    found = bench.compare(drawn, second.outputs, first.outputs)
    return f"{drawn.case.label}: two runs differ: {found.detail}" if found else None


def _both(bench: Untimed, drawn: Drawn, first: Child, second: Child) -> str | None:
    """Both answers against the oracle's, and the oracle's against the other reference's."""
    expected = bench.answers(drawn)
    for child in (first, second):
        found = bench.compare(drawn, child.outputs, expected)
        if found is not None:
            return f"{drawn.case.label}: {found.detail}"
    _dual_oracle(bench, drawn, expected)
    return None


def _dual_oracle(bench: Untimed, drawn: Drawn, expected: Mapping[str, npt.NDArray[Any]]) -> None:
    """Check the oracle against the compiled reference that did not grade, once a kernel and process.

    The public draw is always the same one, so both answer alike in every grade.
    """
    context, kernel = bench.context, bench.kernel
    graded = bench.answered_by
    other = "numba" if graded == "c" else "c"
    datatype, params = context.settings.service.datatype, str(sorted(drawn.case.params.items()))
    key = (kernel.name, datatype, graded, bench.family, params)
    if key not in context.dual_oracle:
        context.dual_oracle[key] = _ask_other(bench, drawn, other, expected)
    if context.dual_oracle[key]:
        note(bench.grading, f"dual oracle not applied: {context.dual_oracle[key]}")


def _ask_other(bench: Untimed, drawn: Drawn, other: str, expected: Mapping[str, npt.NDArray[Any]]) -> str:
    """Why the other reference gave no answer, or an empty string when it agrees; else JudgeFault."""
    context, kernel = bench.context, bench.kernel
    if not context.settings.record.dual_oracle:
        return "record.dual_oracle is off"
    kinds = denominators.for_kernel(kernel, context.settings.measurement).kinds
    if other == "numba" and other not in kinds:
        return "this judge does not run numba"
    try:
        child = context.references.start(kernel, other, bench.family)
    except JudgeFault as fault:
        return f"{other} cannot answer ({fault})"
    try:
        outcome = child.call(drawn.draw, drawn.scalars, timeout_s=context.budget_s(kernel))
        if outcome.status != "ok":
            return f"{other} cannot answer ({outcome.status}: {outcome.detail})"
        found: Failure | None = bench.compare(drawn, child.outputs, expected)
    finally:
        context.references.discard(child)
    if found is not None:
        raise JudgeFault(f"the references of {kernel.name} contradict each other: {other}: {found.detail}")
    return ""
