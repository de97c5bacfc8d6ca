"""Gate 3: who is right on the timed inputs must be right on values nobody showed (scoring.md 1.2)."""

from __future__ import annotations

from hpcagent_bench.harness.checks.untimed import Untimed
from hpcagent_bench.harness.hidden_tests import hidden_cases
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.submission import Grading, Rejection

GATE = "size_class_sweep"


def sweep(grading: Grading, bench: Untimed, child: Child) -> Rejection | None:
    """Run the five held-out cases on ``child``, each under the whole budget; the first failure rejects."""
    kernel, seed = grading.submission.kernel, grading.settings.seed
    for case in hidden_cases(grading.context, kernel, seed):
        failure = bench.run(case, child)
        if failure is not None:
            return Rejection(GATE, "overfit", f"{GATE}: {case.label}: {failure.detail}")
    return None
