"""A call that never returns, at once or later, awake or asleep, deaf to signals: the time limit ends it."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, said, version

NEVER = {
    "asleep": "for (;;) pause();",
    "awake": "for (volatile long k = 0;; k++) {}",
    "deaf": "sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, 0); for (;;) pause();",
    "waiting for itself": "pthread_mutex_t m = {0}; for (int k = 0; k < 2; k++) pthread_mutex_lock(&m);",
    "recursion in place": "for (;;) { volatile char block[64]; block[0] = 1; (void)block[0]; }",
}


@pytest.mark.parametrize("name", NEVER)
def test_a_call_that_never_returns_is_a_timeout(judge: Rig, name: str) -> None:
    refused(
        judge.attack(version(NEVER[name] + "HONEST;")), "timeout", r"rep-verify\[warm-up\] timeout: no answer"
    )


def test_one_that_sleeps_from_the_second_call_on_gains_nothing(judge: Rig) -> None:
    """The guillotine stops it; the complete warm-up run is graded, credited at most a half."""
    verdict = judge.attack(version("static int calls; if (calls++) for (;;) pause(); HONEST;"))
    assert verdict.status in ("ok", "timeout", "incorrect", "overfit"), said(verdict)
    assert verdict.score.score <= 1.0, said(verdict)
    assert all(one.ratio <= 0.5 or one.suspect for one in verdict.inputs if one.result.correct), said(verdict)


def test_twin_that_sleeps_a_moment_is_accepted(judge: Rig) -> None:
    judge.accepts(version("usleep(2000); HONEST;"))
