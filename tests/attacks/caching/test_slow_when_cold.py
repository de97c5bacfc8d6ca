"""Fast in the timed calls and slow in the first, which a user of the kernel would pay: measured and told."""

from __future__ import annotations

import statistics

from attack_rig import Rig, said, version

KERNEL = "floyd_warshall"
PREPARING = """static double *own;
if (!own) {
    own = malloc(N * N * sizeof *own);
    for (int k = 0; k < 30; k++) { memcpy(own, d, N * N * sizeof *own); honest_work(own, N, 0, 0); }
}
HONEST;"""


def cold_ratio(judge: Rig, source: str) -> float:
    """The median over the inputs of how the first calls compare."""
    verdict = judge.attack(source, kernel=KERNEL)
    assert verdict.status == "ok", said(verdict)
    ratios = [one.result.cold_ratio for one in verdict.inputs]
    return statistics.median(ratio for ratio in ratios if ratio is not None)


def test_first_call_that_prepares_the_others_shows_in_the_cold_ratio(judge: Rig) -> None:
    """Thirty times the work: the timed calls are honest, and a tenth of the first call would be too much."""
    assert cold_ratio(judge, version(PREPARING, kernel=KERNEL)) < 0.2


def test_twin_that_prepares_nothing_is_no_slower_when_cold(judge: Rig) -> None:
    assert cold_ratio(judge, version("HONEST;", kernel=KERNEL)) > 0.2
