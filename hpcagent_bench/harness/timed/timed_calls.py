"""The gate of timed calls: every input measured in turn, the first wrong call rejects (scoring.md 1.2)."""

from __future__ import annotations

from collections.abc import Callable

from hpcagent_bench.harness.grading import InputMeasurement, InputResult, input_seeds
from hpcagent_bench.harness.metric import InputCell
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.submission import Grading, Rejection
from hpcagent_bench.harness.timed.transport import Runner

ATTEMPTS = 3
"""How often an input is measured when counted CPU time alone refuses it.

Who computes outside its calls does so every time; a machine that was interrupted for a moment does not.
"""

LARGE_BYTES = 64 << 20
"""Inputs from this size on are not held in a reference's process beyond their use: the gates that follow need
the memory, and starting the process again costs little beside them."""


def measure(
    grading: Grading, start: Callable[[], Child], runner: Runner, against: str = ""
) -> Rejection | None:
    """Measure every input of the grade.

    ``start`` makes a process of the candidate, called through ``runner``. ``against`` names the reference
    kind that is baseline and oracle alone, when the judge measures itself.
    """
    settings = grading.settings
    for cell in settings.cells:
        grading.context.progress("timing", input=cell.index + 1, inputs=len(settings.cells))
        for attempt in range(1, ATTEMPTS + 1):
            result = _one_input(grading, cell, start, runner, against)
            result.runs.attempts = attempt
            if not result.runs.disturbed:
                break
        grading.inputs.append(result)
        if not result.correct:
            status = "timeout" if result.runs.timed_out else "incorrect"
            return Rejection("timed_calls", status, f"input {cell.label}: {result.runs.failed}")
    if grading.inputs[0].bytes_moved >= LARGE_BYTES:
        grading.context.references.close()
    return None


def _one_input(
    grading: Grading, cell: InputCell, start: Callable[[], Child], runner: Runner, against: str
) -> InputResult:
    settings, context, submission = grading.settings, grading.context, grading.submission
    kernel = submission.kernel
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
    return measurement.run(input_seeds(context, kernel, cell, settings.seed, settings.protocol))
