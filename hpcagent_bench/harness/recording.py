"""A verdict as rows of the results database (scoring.md 1.6, 3.2)."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import shlex
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hpcagent_bench import config, paths, results_db
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import timing
from hpcagent_bench.harness.scoring import ScoredInput, Verdict
from hpcagent_bench.results_rows import Kind
from hpcagent_bench.stats import score_rule

COMMIT = "HPCAGENT_BENCH_COMMIT"
"""Environment variable that names the commit of frozen code."""


def credited_ratios(inputs: Sequence[ScoredInput]) -> list[float]:
    """The r_j that count into S_i: inputs timed, graded, correct and not suspect."""
    return [i.ratio for i in inputs if i.valid]


def cells_of(verdict: Verdict) -> tuple[results_db.Cell, ...]:
    """One row per input of the grade; inputs never reached are ``uncovered``."""
    rows = [_cell(i) for i in verdict.inputs]
    for cell in verdict.settings.cells[len(verdict.inputs) :]:
        rows.append(
            results_db.Cell(
                cell.index, cell.label, shape=cell.params, timed=False, ratio=1.0, status="uncovered"
            )
        )
    return tuple(rows)


def _cell(scored: ScoredInput) -> results_db.Cell:
    result, race, reduction = scored.result, scored.result.race, scored.result.reduction
    row = results_db.Cell(
        cell=result.cell.index,
        label=result.cell.label,
        shape=result.cell.params,
        timed=reduction is not None,
        correct=result.correct,
        suspect=bool(scored.suspect),
        ratio=scored.ratio,
        residency="host",
        timer="host-monotonic",
        status="graded" if reduction is not None else "unmeasured",
        reason=scored.suspect or result.runs.failed or scored.note,
    )
    if race is not None:
        row = dataclasses.replace(
            row,
            baseline=race.winner,
            baseline_candidates="+".join(sorted(race.times)),
            race_leader=race.leader,
            race_leader_source=race.leader_source,
            race_cuts=race.cuts,
            baseline_ns=float(statistics.median(race.baseline)),
        )
    if reduction is not None:
        row = dataclasses.replace(
            row,
            significant=reduction.significant,
            p_value=reduction.p_value,
            native_ns=reduction.candidate,
            residual_ns=_clock_gap(result.runs.outside, result.runs.inside),
        )
    return row


def _clock_gap(outside: Sequence[int], inside: Sequence[int]) -> float | None:
    gaps = [o - i for o, i in zip(outside, inside, strict=True)]
    return float(statistics.median(gaps)) if gaps else None


def grade_of(
    verdict: Verdict,
    kind: Kind,
    settings: config.Judge,
    *,
    request_id: str,
    optimizer: str | None = None,
    tokens: int | None = None,
) -> results_db.Grade:
    """The grade row of a verdict. Only a final grade of a solved task under seal carries a credit."""
    reductions = [i.result.reduction for i in verdict.inputs if i.result.reduction is not None]
    races = [i.result.race for i in verdict.inputs if i.result.race is not None]
    kernel, build = verdict.submission.kernel, verdict.build
    return results_db.Grade(
        kernel=kernel.name,
        kind=kind,
        request_id=request_id,
        optimizer=optimizer,
        tokens_so_far=tokens,
        preset=verdict.settings.cells[0].preset,
        datatype=settings.service.datatype,
        source_mode=verdict.submission.source_mode,
        baseline=statistics.mode([r.winner for r in races]) if races else None,
        grading_protocol=verdict.bracket,
        timing_reduction=verdict.settings.protocol.stamp,
        baseline_policy=settings.measurement.baseline_race,
        denominator=verdict.denominator,
        score_rule=score_rule.SCORE_RULE if is_credited(verdict, settings) else None,
        requested_build=list(verdict.submission.build),
        requested_libraries=list(verdict.submission.libraries) or None,
        build_commands=[shlex.join(argv) for argv in build.commands] if build else None,
        build_ok=build.ok if build else None,
        correct=None if verdict.fault else verdict.correct,
        status=verdict.status,
        reason=verdict.reason or None,
        speedup=_measured(verdict),
        credited_speedup=verdict.score.score if is_credited(verdict, settings) else None,
        suspect=verdict.suspect,
        device_runtime=next((n for i in verdict.inputs if (n := i.result.runs.device_runtime)), None),
        baseline_ns=_mean_ns([r.baseline for r in reductions]),
        native_ns=_mean_ns([r.candidate for r in reductions]),
        detail=_detail(verdict),
        workspace_bytes=_workspace(verdict, settings),
        node=platform.node(),
        cpu=cpu_model(),
        commit_sha=commit(),
        task_hash=spec.task_fingerprint(kernel),
        cells=cells_of(verdict),
        sources=_sources(verdict),
    )


def _sources(verdict: Verdict) -> tuple[results_db.Source, ...]:
    """The delivered text; a library has none, and ``detail`` names its digest."""
    submission = verdict.submission
    if submission.library is not None:
        return ()
    return (results_db.Source("host", submission.language, submission.source),)


def final_of(verdict: Verdict, submit: results_db.Grade) -> results_db.Grade | None:
    """The final row beside an accepted submit: the same numbers and cells, status ``graded``."""
    if not verdict.correct:
        return None
    return dataclasses.replace(
        submit, kind="final", status="graded", correct=verdict.solved, call_index=None, sources=()
    )


def regraded_final_of(
    verdict: Verdict, settings: config.Judge, task_hash: str | None, request_id: str
) -> results_db.Grade:
    """The final row of a submission that is graded later (scoring.md 1.1).

    Where the submission fails every input itself, the kernel's task decides: unchanged since the submission's
    own grade, of fingerprint ``task_hash``, it is unsolved; changed, its reason starts ``task:`` and the
    episode is owed a fresh run. A fault of the judge is recorded as one.
    """
    grade = dataclasses.replace(
        grade_of(verdict, "final", settings, request_id=request_id), sources=(), call_index=None
    )
    if verdict.fault:
        return grade
    if verdict.correct:
        return dataclasses.replace(grade, status="graded", correct=verdict.solved)
    reason = _failed_input(verdict)
    measured = any(i.result.reduction is not None for i in verdict.inputs)
    if not measured and task_hash is not None and task_hash != grade.task_hash:
        told = (
            f"task: changed since the submission was graded ({task_hash[:12]} to {str(grade.task_hash)[:12]})"
        )
        return dataclasses.replace(grade, status="error", correct=None, reason=f"{told}; {reason}")
    return dataclasses.replace(grade, status="graded", correct=False, reason=reason)


def _failed_input(verdict: Verdict) -> str:
    """The reason of a failed final grade: that of a gate before the inputs names the first one."""
    measured = any(i.result.reduction is not None for i in verdict.inputs)
    if measured or verdict.reason.startswith("input "):
        return verdict.reason
    return f"input {verdict.settings.cells[0].label}: {verdict.status}: {verdict.reason}"


def is_credited(verdict: Verdict, settings: config.Judge) -> bool:
    """Solved, stamped by the credited protocol, sealed and not suspect (scoring.md 1.6)."""
    stamp = verdict.settings.protocol.stamp
    sound = verdict.solved and not verdict.suspect and verdict.bracket.startswith("sealed-")
    return sound and timing.credited_protocol(stamp, settings.measurement.credited_protocol)


def _measured(verdict: Verdict) -> float:
    """The plain ratio over the timed inputs, as measured: 0 untimed, 1 where a GPU runtime made it void."""
    ratios = [i.result.reduction.ratio for i in verdict.inputs if i.result.reduction is not None]
    if any(i.result.runs.device_runtime for i in verdict.inputs):
        return 1.0
    return score_rule.geometric_mean(ratios) if ratios else 0.0


def _workspace(verdict: Verdict, settings: config.Judge) -> int:
    """The largest workspace the submission asked for on an input of the grade, in bytes."""
    limit = int(settings.limits.kernel_memory_gb * 2**30)
    return max(verdict.submission.workspace_for(cell.params, limit) for cell in verdict.settings.cells)


def _mean_ns(values: Sequence[float]) -> float | None:
    positive = [v for v in values if v > 0]
    return score_rule.geometric_mean(positive) if positive else None


def _detail(verdict: Verdict) -> str | None:
    """What a reader should know besides the numbers: references lost, the spread over the inputs."""
    lost = {k: v for i in verdict.inputs if i.result.race for k, v in i.result.race.lost.items()}
    notes = [f"reference {kind} lost ({why})" for kind, why in sorted(lost.items())]
    if verdict.solved:
        notes.append(f"gsd {verdict.score.gsd:.4f} over {verdict.score.inputs} inputs")
    if verdict.submission.library is not None and verdict.build is not None and verdict.build.digest:
        notes.append(f"library blake2b {verdict.build.digest}")
    if verdict.suspicion:
        notes.append(f"suspect: {verdict.suspicion}")
    notes.extend(verdict.notes)
    if verdict.phases:
        spent = (f"{name} {seconds:.3f}" for name, seconds in verdict.phases.items())
        notes.append(f"seconds: {', '.join(spent)}")
    return "; ".join(notes) or None


@functools.cache
def cpu_model() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


@functools.cache
def commit() -> str | None:
    """The commit of this code: what the environment says, else the checkout's; None when unknown.

    An empty ``HPCAGENT_BENCH_COMMIT`` says unknown: frozen code lies in a run tree, which may itself lie in a
    checkout that has moved on.
    """
    told = os.environ.get(COMMIT)
    if told is not None:
        return told or None
    if not (paths.project_root() / ".git").exists():
        return None
    asked = subprocess.run(
        ["git", "-C", str(paths.project_root()), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or None
