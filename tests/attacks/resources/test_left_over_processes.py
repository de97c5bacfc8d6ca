"""Outliving the grade: threads, sessions and background work all end with the child."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_rig import Rig, version

from hpcagent_bench.harness import native_call

LEAVE = {
    "a waiting thread": "pthread_t t; pthread_create(&t, 0, stay, 0); pthread_detach(t);",
    "a session": "setsid(); setpgid(0, 0);",
    "a timer": "timer_t t; timer_create(CLOCK_MONOTONIC, 0, &t); signal(SIGALRM, SIG_IGN); alarm(1);",
    "no death with the parent": "prctl(PR_SET_PDEATHSIG, 0); prctl(PR_SET_CHILD_SUBREAPER, 1);",
    "an exit handler that stays": "atexit(linger);",
}
BEFORE = """static void *stay(void *p) { for (;;) pause(); return p; }
static void linger(void) { for (;;) pause(); }
__attribute__((destructor)) static void last(void) { linger(); }
static void unused(void) { (void)stay; (void)linger; (void)unused; }"""


@pytest.mark.parametrize("name", LEAVE)
def test_nothing_lives_on_after_the_grade(judge: Rig, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    close = native_call.Child.close

    def closed(child: native_call.Child) -> None:
        started.append(child.pid)
        close(child)

    monkeypatch.setattr(native_call.Child, "close", closed)
    judge.accepts(version(LEAVE[name] + "HONEST;", BEFORE))
    assert len(started) >= 4
    assert [pid for pid in started if pid and Path(f"/proc/{pid}").exists()] == []


def test_twin_that_joins_its_thread_is_accepted(judge: Rig) -> None:
    judge.accepts(
        version(
            "pthread_t t; pthread_create(&t, 0, end, 0); pthread_join(t, 0); HONEST;",
            "static void *end(void *p) { return p; }",
        )
    )
