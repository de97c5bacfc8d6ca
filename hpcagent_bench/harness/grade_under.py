"""Grades of the two routes: a preview for steering, a final that counts (scoring.md 1.1, 1.7)."""

from __future__ import annotations

from hpcagent_bench import protocols
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness import metric, rep_variation, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputMeasurement, input_seeds
from hpcagent_bench.harness.submission import Grading, Rejection, Settings, Submission
from hpcagent_bench.harness.timed import timed_calls, transport
from hpcagent_bench.harness.timed.race import RaceResult


def preview_settings(context: GradingContext, kernel: Kernel) -> Settings:
    """/score: the preview protocol on two inputs of its own, from the first secret seed."""
    protocol = protocols.get(context.settings.measurement.preview_protocol)
    seed = context.seeds.first
    cells = metric.score_cells_for(kernel, context.sizes, context.settings, protocol, seed)
    return Settings(protocol, cells, seed)


def final_settings(context: GradingContext, kernel: Kernel) -> Settings:
    """/submit: the credited protocol, values from the second secret seed salted for this call."""
    protocol = protocols.credited(context.settings.measurement.credited_protocol)
    cells = metric.timed_cells_for(kernel, context.sizes, context.settings, protocol)
    return Settings(protocol, cells, rep_variation.salted(context.seeds.second, rep_variation.fresh_nonce()))


def score_grade(context: GradingContext, submission: Submission) -> scoring.Verdict:
    """The preview grade of /score."""
    return scoring.score(context, submission, preview_settings(context, submission.kernel))


def final_grade(context: GradingContext, submission: Submission) -> scoring.Verdict:
    """The credited grade, the same code for /submit and for a later grade under the protocol."""
    return scoring.score(context, submission, final_settings(context, submission.kernel))


def submit_grade(context: GradingContext, submission: Submission) -> scoring.Verdict:
    """/submit is its own final grade (scoring.md 1.1)."""
    return final_grade(context, submission)


def calibration_grade(context: GradingContext, kernel: Kernel, stamp: str) -> scoring.Verdict:
    """Time the leading reference of ``kernel`` against itself (grade-under run --aa).

    ``stamp`` is a final protocol's, whose calibration protocol measures; its own stamp will do. The candidate
    is a second process of the reference, the denominator that reference alone, always timed anew. No gate but
    that of the timed calls applies, and nothing credits the grade.
    """
    known = protocols.get(stamp)
    protocol = known if known.role == "calibration" else protocols.calibration_of(stamp)
    cells = metric.timed_cells_for(kernel, context.sizes, context.settings, protocol)
    seed = rep_variation.salted(context.seeds.second, rep_variation.fresh_nonce())
    kinds = denominators.for_kernel(kernel, context.settings.measurement).kinds
    kind, _ = context.memory.leader(kernel.name, cells[0].preset, context.settings.service.datatype, kinds)
    runner = transport.runner_of(kind)
    submission = Submission(kernel, "python" if runner == "python" else "c", "", source_mode="reference")

    def judge(grading: Grading) -> Rejection | None:
        return timed_calls.measure(
            grading, lambda: context.references.start(kernel, kind, own=True), runner, against=kind
        )

    return scoring.score(context, submission, Settings(protocol, cells, seed), judge, kind)


def time_baseline(context: GradingContext, kernel: Kernel) -> RaceResult:
    """Race the references on the first preview input, without a candidate (GET /baseline)."""
    settings = preview_settings(context, kernel)
    cell = settings.cells[0]
    measurement = InputMeasurement(context, kernel, cell, settings.protocol, start_candidate=None)
    result = measurement.run(input_seeds(context, kernel, cell, settings.seed, settings.protocol))
    assert result.race is not None  # without a candidate nothing ends the input early
    return result.race
