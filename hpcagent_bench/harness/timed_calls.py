"""The gate of timed calls: every input measured in turn, the first wrong call rejects (scoring.md 1.2)."""

from __future__ import annotations

from collections.abc import Callable

from hpcagent_bench.harness.grading import InputMeasurement, input_seeds
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.submission import Grading, Rejection
from hpcagent_bench.harness.transport import Runner


def measure(
    grading: Grading, start: Callable[[], Child], runner: Runner, against: str = ""
) -> Rejection | None:
    """Measure every input of the grade.

    ``start`` makes a process of the candidate, called through ``runner``. ``against`` names the reference
    kind that is baseline and oracle alone, when the judge measures itself.
    """
    settings, context, submission = grading.settings, grading.context, grading.submission
    kernel = submission.kernel
    for cell in settings.cells:
        context.progress("timing", input=cell.index + 1, inputs=len(settings.cells))
        measurement = InputMeasurement(
            context,
            kernel,
            cell,
            settings.protocol,
            start,
            grading.workspace_bytes(cell.params),
            family=submission.family,
            runner=runner,
            against=against,
        )
        result = measurement.run(input_seeds(context, kernel, cell, settings.seed, settings.protocol))
        grading.inputs.append(result)
        if not result.correct:
            status = "timeout" if result.runs.timed_out else "incorrect"
            return Rejection("timed_calls", status, f"input {cell.label}: {result.runs.failed}")
    return None
