"""A measured submission becomes a verdict: status, ratios, score, suspicion (scoring.md 1.5, 1.6)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench.corpus import precision
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import anticheat
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness.anticheat import independent_verify, sanitizer_check
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.sandbox import Build
from hpcagent_bench.harness.submission import Grading, Rejection, Settings, Submission
from hpcagent_bench.harness.timed import suspects
from hpcagent_bench.harness.timed.suspects import suspect_timing
from hpcagent_bench.stats import score_rule

__all__ = [
    "ScoredInput",
    "Verdict",
    "bracket",
    "independent_verify",
    "sanitizer_check",
    "score",
    "suspect_timing",
]


@dataclass(frozen=True)
class ScoredInput:
    """An input with its credited ratio r_j, why it is suspect (empty when it is not), and a reader's note."""

    result: InputResult
    ratio: float
    suspect: str
    note: str = ""

    @property
    def valid(self) -> bool:
        """Timed, graded, correct and not suspect: counts into S_i."""
        return self.result.correct and self.result.reduction is not None and not self.suspect


@dataclass(frozen=True)
class Verdict:
    """The outcome of one grade. ``score`` is S_i for a final grade; 1 when unsolved."""

    submission: Submission
    settings: Settings
    status: str
    reason: str
    build: Build | None
    inputs: tuple[ScoredInput, ...]
    solved: bool
    score: score_rule.Score
    denominator: str
    bracket: str
    fault: bool = False
    notes: tuple[str, ...] = ()
    """What a reader should know besides: gates not applied, constructs met; never a refusal."""
    suspicion: str = ""
    """Why the whole grade is suspect although it passed every gate, or empty."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds the grade spent in each phase (phases.PHASES)."""
    gate: str = ""
    """The gate that rejected the submission, or empty."""

    @property
    def correct(self) -> bool:
        """Whether the submission passed every gate of its route."""
        return self.status == "ok"

    @property
    def suspect(self) -> bool:
        """Whether nothing may be credited: the grade as a whole is suspect, or every measured input is."""
        return bool(self.suspicion) or (bool(self.inputs) and all(i.suspect for i in self.inputs))


def _scored(result: InputResult, context: GradingContext) -> ScoredInput:
    suspect = suspect_timing(result, context)
    ratio = 1.0 if suspect or result.reduction is None else result.reduction.speedup
    return ScoredInput(result, ratio, suspect, "" if suspect else suspects.note(result, context))


def bracket(context: GradingContext) -> str:
    """The stamp of seal and clock; an unsealed grade carries one that is never credited."""
    seal = "sealed-nonce-v1" if context.settings.grading.seal else "open-nonce-v1"
    return f"{seal}+host-monotonic"


def score(
    context: GradingContext,
    submission: Submission,
    settings: Settings,
    judge: Callable[[Grading], Rejection | None] = anticheat.judge,
    denominator: str = "",
) -> Verdict:
    """Grade a submission: ``judge`` runs the gates, then credit. Judge faults are caught here.

    ``denominator`` names the baseline where it is not the kernel's own.
    """
    context.phases.take()
    named = denominator or denominators.for_kernel(submission.kernel, context.settings.measurement).name
    with tempfile.TemporaryDirectory(prefix="hpcagent-grade-", dir=context.work) as folder:
        grading = Grading(context, submission, settings, Path(folder))
        rejection: Rejection | None = None
        fault = ""
        try:
            context.require_cores()
            if settings.protocol.role == "final" and (note := context.node.require()):
                grading.notes.append(note)
            rejection = judge(grading)
        except (JudgeFault, precision.Ungradeable, UserError) as error:
            fault = str(error)
        except (OSError, MemoryError) as error:
            fault = f"{type(error).__name__}: {error}"
    inputs = tuple(_scored(result, context) for result in grading.inputs)
    valid = [i.ratio for i in inputs if i.valid]
    solved = not fault and rejection is None and len(inputs) == len(settings.cells) and bool(valid)
    status, reason = _status(fault, rejection, grading.suspicion, inputs, solved)
    return Verdict(
        submission,
        settings,
        status,
        reason,
        grading.build,
        inputs,
        solved,
        score_rule.credit(valid, solved),
        named,
        bracket(context),
        bool(fault),
        tuple(grading.notes),
        grading.suspicion,
        context.phases.take(),
        "" if rejection is None else rejection.gate,
    )


def _status(
    fault: str,
    rejection: Rejection | None,
    suspicion: str,
    inputs: tuple[ScoredInput, ...],
    solved: bool,
) -> tuple[str, str]:
    """Status and reason of a grade (scoring.md 3.2): the judge's fault, else the gate's, else ``ok``."""
    if fault:
        return "score_error", fault
    if rejection is not None:
        return rejection.status, rejection.reason
    if suspicion or solved:
        return "ok", suspicion
    return "ok", "every input is suspect: " + (inputs[0].suspect if inputs else "none was measured")
