"""The correctness gates of a grade as one ordered list; the first rejection ends it (scoring.md 1.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hpcagent_bench import protocols
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.building import builds, constructs
from hpcagent_bench.harness.building.builds import start_candidate, start_sanitized
from hpcagent_bench.harness.checks import reverify, sanitizers
from hpcagent_bench.harness.checks.held_out import sweep
from hpcagent_bench.harness.checks.untimed import Untimed, note
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.submission import Grading, Rejection
from hpcagent_bench.harness.timed import timed_calls, transport
from hpcagent_bench.toolchain import flags, languages

__all__ = [
    "GATES",
    "Gate",
    "bench_of",
    "build_gate",
    "held_out",
    "independent_verify",
    "judge",
    "sanitizer_check",
    "start_candidate",
    "timed_calls_gate",
]


@dataclass(frozen=True)
class Gate:
    """A named check. ``roles`` are the protocol roles whose grades must pass it."""

    name: str
    roles: frozenset[protocols.Role]
    check: Callable[[Grading], Rejection | None]


def build_gate(grading: Grading) -> Rejection | None:
    """Make every build the grade needs; the request's own list adds only -I -D -l -L.

    Raises JudgeFault for a host that cannot build.
    """
    submission = grading.submission
    language = languages.get(submission.language)
    if submission.library is None and language.compiled and submission.family not in language.compilers:
        return Rejection("build", "build_error", f"{submission.family} does not build {language.name}")
    grading.context.progress("building")
    with grading.context.phases.of("build"):
        for found in constructs.notes(submission.source, submission.language):
            note(grading, f"source: {found}")
        if not submission.library and flags.without_openmp(submission.language, submission.family):
            note(grading, f"the {submission.family} compilers of this host have no OpenMP: built without it")
        try:
            builds.start(grading)
        except UserError as missing:
            raise JudgeFault(str(missing)) from missing
    assert grading.build is not None
    if grading.build.ok:
        return None
    reason = "compile time limit" if grading.build.timed_out else _first_error(grading.build.log)
    return Rejection("build", "build_error", reason)


def timed_calls_gate(grading: Grading) -> Rejection | None:
    """Measure every input in turn; each call is compared with the oracle, the first wrong one rejects."""
    submission = grading.submission
    compiled = submission.library is not None or languages.get(submission.language).compiled
    runner: transport.Runner = "native" if compiled else "python"
    return timed_calls.measure(grading, lambda: start_candidate(grading), runner)


def held_out(grading: Grading) -> Rejection | None:
    """The held-out cases, in one process of the graded build."""
    grading.context.progress("held-out cases")
    with grading.context.phases.of("held-out"):
        bench = bench_of(grading)
        with bench.candidate("held-out") as child:
            return sweep(grading, bench, child)


def independent_verify(grading: Grading) -> Rejection | None:
    """The fresh build, on one core, in two processes."""
    grading.context.progress("re-verifying")
    assert grading.rebuilt is not None
    if not grading.rebuilt.ok:
        why = "time limit" if grading.rebuilt.timed_out else _first_error(grading.rebuilt.log)
        return reverify.rejection(f"the fresh rebuild failed: {why}")
    with grading.context.phases.of("re-verify"):
        return reverify.verify(grading, bench_of(grading))


def sanitizer_check(grading: Grading) -> Rejection | None:
    """One run under the sanitizers, where they apply."""
    grading.context.progress("sanitizing")
    obstacle = builds.sanitizer_obstacle(grading.submission)
    made = grading.sanitized
    if obstacle or made is None or not made.ok:
        log = "time limit" if made is None or made.timed_out else _first_error(made.log)
        sanitizers.not_applied(grading, obstacle or f"the sanitized build failed: {log}")
        return None
    with grading.context.phases.of("sanitize"):
        bench = bench_of(grading)
        with bench.candidate("sanitized") as child:
            return sanitizers.run(grading, bench, child)


def bench_of(grading: Grading) -> Untimed:
    """What runs untimed cases. Its processes are all started at once, and get ready while the first works."""
    if grading.untimed is None:
        bench = grading.untimed = Untimed(grading)
        bench.start_oracle()
        bench.children["held-out"] = start_candidate(grading)
        if grading.rebuilt is not None and grading.rebuilt.ok:
            one = grading.context.cores[-1:]  # the oracle, which answers meanwhile, has the first
            for name in ("first", "second"):
                bench.children[name] = start_candidate(grading, cores=one, build=grading.rebuilt)
        if grading.sanitized is not None and grading.sanitized.ok:
            bench.children["sanitized"] = start_sanitized(grading)
        for child in bench.children.values():
            child.clocked = False
    return grading.untimed


_ERROR = re.compile(r"\b(error|Error):|\bundefined reference\b|does not define")


def _first_error(log: str) -> str:
    """The line of a build log that says best why it failed, at most 300 characters."""
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["the compiler failed"]
    return next((line for line in lines if _ERROR.search(line)), lines[-1])[:300]


EVERY_ROLE: frozenset[protocols.Role] = frozenset({"preview", "final", "calibration"})

FINAL: frozenset[protocols.Role] = frozenset({"final"})

GATES: tuple[Gate, ...] = (
    Gate("build", EVERY_ROLE, build_gate),
    Gate("timed_calls", EVERY_ROLE, timed_calls_gate),
    Gate("size_class_sweep", FINAL, held_out),
    Gate("independent_verify", FINAL, independent_verify),
    Gate("sanitizers", FINAL, sanitizer_check),
)
"""In the order of scoring.md 1.2."""


def judge(grading: Grading) -> Rejection | None:
    """Run the gates of the grade's protocol role in order; the first rejection, or None when all pass."""
    try:
        for gate in GATES:
            if grading.settings.protocol.role in gate.roles:
                rejection = gate.check(grading)
                if rejection is not None:
                    return rejection
        return None
    finally:
        if grading.untimed is not None:
            grading.untimed.close()
