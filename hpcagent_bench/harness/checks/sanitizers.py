"""Gate 5: one run of a sanitized build at preset S on the public draw (scoring.md 1.2).

A memory error rejects. Undefined behaviour only makes the grade suspect, and what cannot be applied is noted.
"""

from __future__ import annotations

from hpcagent_bench.harness.checks.reverify import public_case
from hpcagent_bench.harness.checks.untimed import Untimed, note
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.submission import Grading, Rejection

GATE = "sanitizers"
PRESET = "S"
REPORT = "sanitizer: "


def run(grading: Grading, bench: Untimed, child: Child) -> Rejection | None:
    """One sanitized call; its outputs were compared elsewhere, so only what the sanitizers say counts."""
    with bench.drawn(public_case(grading.context, grading, PRESET), answered=False) as drawn:
        try:
            failure = bench.call(drawn, child)
        except JudgeFault as fault:
            not_applied(grading, str(fault))
            return None
    undefined = child.sanitizer_notes().splitlines()
    if undefined:
        grading.suspicion = grading.suspicion or f"undefined behaviour: {undefined[0]}"
    if failure is None:
        return None
    _, marked, head = failure.detail.partition(REPORT)
    if marked or failure.detail.startswith("wrote past"):
        return Rejection(GATE, "incorrect", REPORT + (head or failure.detail))
    not_applied(grading, failure.detail)
    return None


def not_applied(grading: Grading, why: str) -> None:
    """Note that the gate said nothing about this submission, and why."""
    note(grading, f"sanitizers not applied: {why}")
