"""What a grade tells the agent: never a reference value, a seed, a bound or a tolerance (scoring.md 3.2)."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import Any

from hpcagent_bench.harness import denominator, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.scoring import ScoredInput, Verdict
from hpcagent_bench.harness.submission import Settings, Submission
from hpcagent_bench.stats import score_rule

NOT_GRADED = "the judge could not grade this; try again"
NOT_CREDITED = "correct, but none of its timings can be credited"
HELD_BACK = {
    "overfit": "size_class_sweep: wrong on a held-out case",
    "independent_verify": "independent_verify: wrong or different in a fresh build or on other values",
}
"""What is told of gates whose reasons speak of hidden inputs; by status, or by how the reason begins."""


def finite(value: float | None) -> float | None:
    """``value``, or None (JSON null) when it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


def faulted(context: GradingContext, submission: Submission, settings: Settings, reason: str) -> Verdict:
    """The verdict of a grade that a fault of the judge kept from beginning."""
    return Verdict(
        submission=submission,
        settings=settings,
        status="score_error",
        reason=reason,
        build=None,
        inputs=(),
        solved=False,
        score=score_rule.credit([], False),
        denominator=denominator.for_kernel(submission.kernel, context.settings.measurement).name,
        bracket=scoring.bracket(context),
        fault=True,
    )


def submit_answer(verdict: Verdict, request_id: str, feedback: str) -> dict[str, Any]:
    """The verdict alone; with ``feedback=full`` also what /score would tell."""
    body: dict[str, Any] = {"correct": "yes" if verdict.correct else "no", "request_id": request_id}
    if verdict.status == "build_error" and verdict.build is not None:
        body["build_log"] = verdict.build.log
    if verdict.fault:
        body["judge_fault"] = True
    if feedback == "full":
        body["grade"] = score_answer(verdict)
    return body


def score_answer(verdict: Verdict) -> dict[str, Any]:
    """How right and how fast, for steering. A failed check names the input and run, and no expected value."""
    submission = verdict.submission
    reductions = [i.result.reduction for i in verdict.inputs if i.result.reduction is not None]
    ratios = [i.ratio for i in verdict.inputs if i.result.reduction is not None]
    native = statistics.fmean([r.candidate for r in reductions]) if reductions else None
    baselines = _baselines(verdict)
    body: dict[str, Any] = {
        "kernel": submission.kernel.name,
        "language": submission.language,
        "preset": verdict.settings.cells[0].preset,
        "correct": verdict.correct,
        "public_correct": verdict.correct,
        "build_ok": verdict.build.ok if verdict.build else False,
        "status": verdict.status,
        "detail": detail(verdict),
        "timed_out": verdict.status == "timeout",
        "harness_fault": verdict.fault,
        "max_rel_error": finite(max((i.result.runs.max_rel_error for i in verdict.inputs), default=0.0)),
        "speedup": finite(math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else 0.0),
        "native_ns": finite(native),
        "baseline_ns": finite(statistics.fmean([r.baseline for r in reductions])) if reductions else None,
        "baseline": verdict.denominator,
        "baselines": baselines,
        "speedups": {kind: ns / native for kind, ns in baselines.items()} if native else {},
        "oracle": "c",
        "cells": [cell_answer(i) for i in verdict.inputs],
    }
    if verdict.fault:
        body["judge_fault"] = True
    if verdict.build is not None and verdict.build.log:
        body["build_log"] = verdict.build.log
    return body


def detail(verdict: Verdict) -> str:
    """Why, in words an agent may read: a fault's cause, hidden cases and bounds of belief stay here."""
    if verdict.fault:
        return NOT_GRADED
    if verdict.status == "ok":
        return "" if verdict.solved else NOT_CREDITED
    for key, told in HELD_BACK.items():
        if verdict.status == key or verdict.reason.startswith(key):
            return told
    return verdict.reason


def _baselines(verdict: Verdict) -> dict[str, float]:
    """Mean over the inputs of each reference's median time, in ns; without those cut on an input."""
    times: dict[str, list[float]] = defaultdict(list)
    races = [i.result.race for i in verdict.inputs if i.result.race is not None]
    for race in races:
        for kind, runs in race.times.items():
            if runs:
                times[kind].append(float(statistics.median(runs)))
    return {kind: statistics.fmean(found) for kind, found in times.items() if len(found) == len(races)}


def cell_answer(scored: ScoredInput) -> dict[str, Any]:
    """One input of a preview."""
    reduction, race = scored.result.reduction, scored.result.race
    return {
        "label": scored.result.cell.label,
        "correct": scored.result.correct,
        "reason": scored.result.runs.failed,
        "ratio": finite(scored.ratio),
        "p_value": finite(reduction.p_value) if reduction else None,
        "significant": reduction.significant if reduction else None,
        "native_ns": finite(reduction.candidate) if reduction else None,
        "baseline_ns": finite(reduction.baseline) if reduction else None,
        "baseline": race.winner if race else None,
    }
