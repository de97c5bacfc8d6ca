"""A process that stops or delays itself: the clock goes on meanwhile."""

from __future__ import annotations

import pytest
from attack_rig import Rig, said, version

STOPS = {
    "raises SIGSTOP": "raise(SIGSTOP);",
    "stops by a thread": "pthread_t t; pthread_create(&t, 0, stopper, (void *)pthread_self()); "
    "pthread_join(t, 0);",
    "lets a timer stop it": "struct itimerval soon = {{0, 0}, {0, 100}}; signal(SIGALRM, stop); "
    "setitimer(ITIMER_REAL, &soon, 0);",
    "ignores all signals": "for (int k = 1; k < 65; k++) signal(k, SIG_IGN);",
    "blocks all signals": "sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0);",
}
BEFORE = """static void stop(int number) { (void)number; raise(SIGSTOP); }
static void *stopper(void *other) { pthread_kill((pthread_t)other, SIGSTOP); return 0; }
"""


@pytest.mark.parametrize("name", STOPS)
def test_stopping_hides_no_time(judge: Rig, name: str) -> None:
    verdict = judge.attack(version(f"{STOPS[name]} (void)stop; (void)stopper; HONEST;", BEFORE))
    assert verdict.status in ("ok", "timeout"), said(verdict)
    assert all(one.ratio < 3 for one in verdict.inputs), said(verdict)


def test_twin_that_handles_a_signal_of_its_own_is_accepted(judge: Rig) -> None:
    before = "static volatile int seen; static void note(int number) { seen = number; }\n"
    judge.accepts(version("signal(SIGUSR1, note); raise(SIGUSR1); if (!seen) abort(); HONEST;", before))
