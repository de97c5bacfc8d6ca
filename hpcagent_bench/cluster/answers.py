"""What a grade tells the agent: never a reference value, a seed or a tolerance."""

from __future__ import annotations

import math
import statistics
from typing import Any

from hpcagent_bench.harness.scoring import ScoredInput, Verdict


def finite(value: float | None) -> float | None:
    """``value``, or None (JSON null) when it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


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
    speedup = math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else 0.0
    body: dict[str, Any] = {
        "kernel": submission.kernel.name,
        "language": submission.language,
        "preset": verdict.settings.cells[0].preset,
        "correct": verdict.correct,
        "public_correct": verdict.correct,
        "build_ok": verdict.build.ok if verdict.build else False,
        "status": verdict.status,
        "detail": verdict.reason if not verdict.fault else "the judge could not grade this; try again",
        "timed_out": verdict.status == "timeout",
        "harness_fault": verdict.fault,
        "max_rel_error": finite(max((i.result.runs.max_rel_error for i in verdict.inputs), default=0.0)),
        "speedup": finite(speedup),
        "native_ns": finite(statistics.fmean([r.candidate for r in reductions])) if reductions else None,
        "baseline_ns": finite(statistics.fmean([r.baseline for r in reductions])) if reductions else None,
        "baseline": verdict.denominator,
        "oracle": "c",
        "cells": [cell_answer(i) for i in verdict.inputs],
    }
    if verdict.build is not None and verdict.build.log:
        body["build_log"] = verdict.build.log
    return body


def cell_answer(scored: ScoredInput) -> dict[str, Any]:
    """One input of a preview."""
    reduction, race = scored.result.reduction, scored.result.race
    return {
        "label": scored.result.cell.label,
        "correct": scored.result.correct,
        "reason": scored.result.runs.failed,
        "ratio": finite(scored.ratio),
        "p_value": reduction.p_value if reduction else None,
        "significant": reduction.significant if reduction else None,
        "native_ns": finite(reduction.candidate) if reduction else None,
        "baseline_ns": finite(reduction.baseline) if reduction else None,
        "baseline": race.winner if race else None,
    }
