"""As many threads as the kernel gives: the grade is refused, and none of them is there afterwards."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

SPIN = """static void *spin(void *p) { for (;;) if (!p) return p; }
static __attribute__((unused)) void *rest(void *p) { pause(); return p; }"""
MAKE = """pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536);
pthread_t t; for (long k = 0; k < 20000; k++) if (pthread_create(&t, &small, {run}, (void *)1)) break;
{then}"""


@pytest.mark.parametrize("run", ["spin", "rest"])
def test_a_bomb_of_threads_is_refused(judge: Rig, run: str) -> None:
    body = MAKE.format(run=run, then="for (;;) sleep(1);")
    verdict = judge.attack(version(body, SPIN))
    assert verdict.status in ("incorrect", "timeout"), verdict.reason
    refused(verdict, verdict.status, r"rep-verify\[warm-up\] (crash|timeout|refused)")


def test_spinning_threads_left_behind_by_a_call_are_refused(judge: Rig) -> None:
    few = MAKE.format(run="spin", then="HONEST;").replace("20000", "20")
    verdict = judge.attack(version(few, SPIN))
    refused(
        verdict, "incorrect", r"rep-verify\[.*(outside|between calls|after it returned|cores: used|thread)"
    )


def test_twin_with_two_threads_that_end_is_accepted(judge: Rig) -> None:
    two = """pthread_t t[2]; for (int k = 0; k < 2; k++) pthread_create(&t[k], 0, spin, 0);
    for (int k = 0; k < 2; k++) pthread_join(t[k], 0);
    HONEST;"""
    judge.accepts(version(two, SPIN))
