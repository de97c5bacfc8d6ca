"""A measured submission becomes a verdict: status, ratios, score, suspicion (scoring.md 1.5, 1.6)."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench.corpus import precision
from hpcagent_bench.harness import anticheat
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.sandbox import Build
from hpcagent_bench.harness.submission import Grading, Rejection, Settings, Submission
from hpcagent_bench.stats import score_rule

CLOCK_SLACK_NS = 1_000_000
CLOCK_SLACK_SHARE = 0.2
"""How far the clock outside may exceed the one inside, by median: transport costs tens of microseconds."""

CPU_SLACK_SHARE = 0.1
CPU_SLACK_NS = 20_000_000
"""CPU time beyond cores x wall: process clocks tick coarsely, so short calls get a fixed allowance."""


@dataclass(frozen=True)
class ScoredInput:
    """An input with its credited ratio r_j, and why it is suspect (empty when it is not)."""

    result: InputResult
    ratio: float
    suspect: str

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

    @property
    def correct(self) -> bool:
        """Whether the submission passed every gate of its route."""
        return self.status == "ok"

    @property
    def suspect(self) -> bool:
        """Whether nothing may be credited: the grade as a whole is suspect, or every measured input is."""
        return bool(self.suspicion) or (bool(self.inputs) and all(i.suspect for i in self.inputs))


def suspect_timing(result: InputResult, context: GradingContext) -> str:
    """Why an input's timing cannot be believed, or an empty string (scoring.md 1.5).

    A GPU runtime in a host grade; bounds on the ratio and on physical bandwidth; the two clocks of a call
    disagreeing by more than the transport explains; more CPU time than the granted cores have.
    """
    if result.reduction is None or result.runs.stopped_at_ns is not None:
        return ""
    runs, bounds = result.runs, context.settings.record
    if runs.device_runtime:
        return f"a host grade mapped {runs.device_runtime}"
    inside = statistics.median(runs.inside)
    outside = statistics.median(runs.outside)
    if max(result.reduction.speedup, result.reduction.ratio) > bounds.speedup_suspect_above_host:
        return f"ratio above {bounds.speedup_suspect_above_host:g}"
    if inside <= 0 or result.bytes_moved / inside > bounds.physical_bandwidth_gbps_host:
        return f"faster than {bounds.physical_bandwidth_gbps_host:g} GB/s"
    if outside - inside > CLOCK_SLACK_NS + CLOCK_SLACK_SHARE * inside or inside > outside:
        return "the clocks inside and outside disagree"
    granted = len(context.cores) * outside
    if statistics.median(runs.cpu) > granted * (1 + CPU_SLACK_SHARE) + CPU_SLACK_NS:
        return f"more CPU time than {len(context.cores)} core(s) have"
    return ""


def _scored(result: InputResult, context: GradingContext) -> ScoredInput:
    suspect = suspect_timing(result, context)
    ratio = 1.0 if suspect or result.reduction is None else result.reduction.speedup
    return ScoredInput(result, ratio, suspect)


def bracket(context: GradingContext) -> str:
    """The stamp of seal and clock; an unsealed grade carries one that is never credited."""
    seal = "sealed-nonce-v1" if context.settings.grading.seal else "open-nonce-v1"
    return f"{seal}+host-monotonic"


def score(context: GradingContext, submission: Submission, settings: Settings) -> Verdict:
    """Grade a submission: all gates of its protocol's role, then credit. Judge faults are caught here."""
    context.phases.take()
    with tempfile.TemporaryDirectory(prefix="hpcagent-grade-", dir=context.work) as folder:
        grading = Grading(context, submission, settings, Path(folder))
        rejection: Rejection | None = None
        fault = ""
        try:
            if settings.protocol.role == "final" and (note := context.node.require()):
                grading.notes.append(note)
            rejection = anticheat.judge(grading)
        except (JudgeFault, precision.Ungradeable) as error:
            fault = str(error)
        except (OSError, MemoryError) as error:
            fault = f"{type(error).__name__}: {error}"
    inputs = tuple(_scored(result, context) for result in grading.inputs)
    valid = [i.ratio for i in inputs if i.valid]
    complete = len(inputs) == len(settings.cells)
    solved = not fault and rejection is None and complete and bool(valid)
    if fault:
        status, reason = "score_error", fault
    elif rejection is not None:
        status, reason = rejection.status, rejection.reason
    else:
        status, reason = "ok", "" if solved else "every input is suspect: " + inputs[0].suspect
    return Verdict(
        submission,
        settings,
        status,
        reason,
        grading.build,
        inputs,
        solved,
        score_rule.credit(valid, solved),
        denominators.for_kernel(submission.kernel, context.settings.measurement).name,
        bracket(context),
        bool(fault),
        tuple(grading.notes),
        grading.suspicion,
        context.phases.take(),
    )
