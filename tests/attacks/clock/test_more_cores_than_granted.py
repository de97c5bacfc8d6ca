"""A thread on a core that was not granted: the process' CPU time tells."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from attack_rig import Rig, gains_nothing, rig, said, version

from hpcagent_bench.harness.grading import CandidateRuns

KERNEL = "gemm"
BEFORE = """struct job
{ const double *a, *b; double *c; int64_t from, to, NJ, NK; double alpha, beta; int core; };
static void *part(void *given)
{
    struct job *j = given;
    if (j->core >= 0) {
        cpu_set_t cores; CPU_ZERO(&cores); CPU_SET(j->core, &cores);
        sched_setaffinity(0, sizeof cores, &cores);
    }
    honest_work(j->a + j->from * j->NK, j->b, j->c + j->from * j->NJ, j->to - j->from, j->NJ, j->NK, j->alpha,
                j->beta, 0, 0);
    return 0;
}
"""
BODY = """struct job low = {a, b, c, 0, NI / 2, NJ, NK, alpha, beta, LOW};
struct job high = {a, b, c, NI / 2, NI, NJ, NK, alpha, beta, HIGH};
pthread_t thread; pthread_create(&thread, 0, part, &high); part(&low); pthread_join(thread, 0);"""

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def judge() -> Iterator[Rig]:
    """Calls of some milliseconds, of which half is worth having for nothing."""
    with rig(rung_bytes=2**22) as made:
        yield made


def test_second_core_taken_by_undoing_the_affinity_is_flagged(judge: Rig) -> None:
    body = BODY.replace("LOW", "0").replace("HIGH", "1")
    for _ in range(4):  # while the other core is busy there is nothing to take
        verdict = judge.preview(version(body, BEFORE, KERNEL), kernel=KERNEL)
        if verdict.status != "ok" or verdict.suspect:
            break
    used = [cpu / wall for one in verdict.inputs for cpu, wall in both(one.result.runs)]
    assert verdict.status != "ok" or verdict.suspect or max(used) < 1.2, said(verdict)


def both(runs: CandidateRuns) -> list[tuple[int, int]]:
    """CPU and wall time of the timed calls."""
    return list(zip(runs.cpu, runs.outside, strict=True))


def test_process_that_moves_to_another_core_is_flagged(judge: Rig) -> None:
    body = """cpu_set_t other; CPU_ZERO(&other); CPU_SET(1, &other);
    sched_setaffinity(0, sizeof other, &other); HONEST;"""
    gains_nothing(judge.preview(version(body, kernel=KERNEL), kernel=KERNEL), "ran on core 1")


def test_twin_with_two_threads_on_the_granted_core_is_accepted(judge: Rig) -> None:
    body = BODY.replace("LOW", "-1").replace("HIGH", "-1")
    judge.accepts(version(body, BEFORE, KERNEL), kernel=KERNEL)
