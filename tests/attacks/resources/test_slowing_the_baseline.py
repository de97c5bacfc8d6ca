"""Slowing the other side from inside: a candidate's threads stand still while the reference is timed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from attack_rig import Rig, flagged, refused, version

from hpcagent_bench.harness.native_call import Child
from tests.native.native_kernels import child, draw, scalars

HAMMER = """static void *hammer(void *p) {
    static char block[32 << 20];
    for (;;) for (unsigned long k = 0; k < sizeof block; k += 64) block[k]++;
    return p;
}"""
WAIT = "static void *hammer(void *p) { for (;;) usleep(1000); return p; }"
START = "static pthread_t t; if (!t) pthread_create(&t, 0, hammer, 0);"


def states(running: Child) -> set[str]:
    """What the child's threads do."""
    tasks = Path(f"/proc/{running.pid}/task").iterdir()
    return {(task / "stat").read_text().rpartition(") ")[2][0] for task in tasks}


def cpu_ns(running: Child) -> int:
    return time.clock_gettime_ns(((~running.pid) << 3) | 2)


def test_threads_of_a_candidate_stand_between_its_calls() -> None:
    given = draw()
    with child(START + " y[0] += s * x[0];", WAIT) as running:
        assert running.call(given, scalars(), timeout_s=10).status == "ok"
        assert states(running) <= {"T", "t"}
        before = cpu_ns(running)
        time.sleep(0.1)  # long enough for a hundred turns of the thread
        assert cpu_ns(running) == before
    given.close()


@pytest.mark.parametrize("body", [START + "HONEST;", "HONEST;" + START])
def test_a_hammering_thread_is_refused(judge: Rig, body: str) -> None:
    refused(
        judge.attack(version(body, HAMMER)),
        "incorrect",
        r"rep-verify\[.*(outside|between calls|after it returned|cores: used)",
    )


def test_running_on_a_core_that_was_not_granted_is_suspect(judge: Rig) -> None:
    """A child can undo its own affinity, and so move to where the reference runs next."""
    spread = """cpu_set_t all; memset(&all, 255, sizeof all); CPU_CLR(sched_getcpu(), &all);
    sched_setaffinity(0, sizeof all, &all);
    HONEST;"""
    flagged(judge.attack(version(spread)), "core")


def test_twin_whose_thread_ends_in_the_call_is_accepted(judge: Rig) -> None:
    once = "static void *once(void *p) { static volatile char block[4096]; block[0]++; return p; }"
    judge.accepts(version("pthread_t t; pthread_create(&t, 0, once, 0); pthread_join(t, 0); HONEST;", once))
