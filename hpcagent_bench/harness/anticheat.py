"""The correctness gates of a grade as one ordered list; the first rejection ends it (scoring.md 1.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hpcagent_bench import protocols
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.grading import InputMeasurement, input_seeds
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.submission import Grading, Rejection
from hpcagent_bench.toolchain import flags


@dataclass(frozen=True)
class Gate:
    """A named check. ``roles`` are the protocol roles whose grades must pass it."""

    name: str
    roles: frozenset[protocols.Role]
    check: Callable[[Grading], Rejection | None]


def build_gate(grading: Grading) -> Rejection | None:
    """Compile the source with the flag matrix; the request's list adds only -I -D -l -L."""
    submission = grading.submission
    kept, _ = flags.split_build_list(list(submission.build))
    grading.context.progress("building")
    grading.build = sandbox.build(
        submission.source,
        submission.language,
        submission.kernel.symbol,
        grading.folder,
        extra=kept,
        timeout_s=grading.context.settings.timeouts.compile_s,
        sealed=grading.context.settings.grading.seal,
    )
    if grading.build.ok:
        return None
    reason = "compile time limit" if grading.build.timed_out else _first_error(grading.build.log)
    return Rejection("build", "build_error", reason)


def timed_calls_gate(grading: Grading) -> Rejection | None:
    """Measure every input in turn; each call is compared with the oracle, the first wrong one rejects."""
    settings, context, kernel = grading.settings, grading.context, grading.submission.kernel
    for cell in settings.cells:
        context.progress("timing", input=cell.index + 1, inputs=len(settings.cells))
        measurement = InputMeasurement(
            context,
            kernel,
            cell,
            settings.protocol,
            lambda: start_candidate(grading),
            grading.workspace_bytes(cell.params),
        )
        result = measurement.run(input_seeds(context, kernel, cell, settings.seed, settings.protocol))
        grading.inputs.append(result)
        if not result.correct:
            status = "timeout" if result.runs.timed_out else "incorrect"
            return Rejection("timed_calls", status, f"input {cell.label}: {result.runs.failed}")
    return None


def start_candidate(grading: Grading) -> Child:
    """A sealed process with the submission's library, on the judge's timed cores."""
    context = grading.context
    assert grading.build is not None
    assert grading.build.library is not None
    return Child.native(
        grading.build.library,
        context.binding(grading.submission.kernel),
        cores=context.cores,
        memory_bytes=int(context.settings.limits.kernel_memory_gb * 2**30),
        stack_mb=context.settings.limits.thread_stack_mb,
        sealed=context.settings.grading.seal,
        pool=context.pool,
    )


def _first_error(log: str) -> str:
    for line in log.splitlines():
        if "error" in line.lower() or "undefined" in line.lower():
            return line.strip()[:300]
    return (log.strip().splitlines() or ["the compiler failed"])[-1][:300]


EVERY_ROLE: frozenset[protocols.Role] = frozenset({"preview", "final", "calibration"})

GATES: tuple[Gate, ...] = (
    Gate("build", EVERY_ROLE, build_gate),
    Gate("timed_calls", EVERY_ROLE, timed_calls_gate),
)
"""In the order of scoring.md 1.2. A gate of final grades only (held-out cases, re-verification,
sanitizers) is one more entry with ``roles=frozenset({"final"})``, after these."""


def judge(grading: Grading) -> Rejection | None:
    """Run the gates of the grade's protocol role in order; the first rejection, or None when all pass."""
    for gate in GATES:
        if grading.settings.protocol.role in gate.roles:
            rejection = gate.check(grading)
            if rejection is not None:
                return rejection
    return None
