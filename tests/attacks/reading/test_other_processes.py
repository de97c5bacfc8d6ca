"""Stopping, killing or slowing the judge and its other children: there is nobody else to be seen."""

from __future__ import annotations

import os
import signal

import pytest
from attack_rig import Rig, refused, version

REACH = {
    "everybody": "kill(-1, SIGSTOP) == 0",
    "the parent": "getppid() != 0 || kill(getppid(), SIGSTOP) == 0",
    "the process group": "killpg(getpgrp(), SIGSTOP) == 0",
    "a number of the host": f"kill({os.getpid()}, SIGKILL) == 0",
    "a thread of the host": f"syscall(SYS_tgkill, {os.getpid()}, {os.getpid()}, SIGSTOP) == 0",
    "a queued signal": f"syscall(SYS_rt_sigqueueinfo, {os.getpid()}, SIGSTOP, 0) == 0",
    "limits of another": f"prlimit({os.getpid()}, RLIMIT_CPU, &(struct rlimit){{1, 1}}, 0) == 0",
    "cores of another": f"syscall(SYS_sched_setaffinity, {os.getpid()}, 8, &(long){{1}}) == 0",
    "rank of another": f"setpriority(PRIO_PROCESS, {os.getpid()}, 19) == 0",
    "a session of another": f"getsid({os.getpid()}) >= 0 || getpgid({os.getpid()}) >= 0",
    "tracing another": f"syscall(SYS_ptrace, 16, {os.getpid()}, 0, 0) == 0",
}


@pytest.mark.parametrize("name", REACH)
def test_no_other_process_is_reached(judge: Rig, name: str) -> None:
    judge.accepts(version(f"if ({REACH[name]}) return; HONEST;"))


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL, signal.SIGTSTP, signal.SIGSEGV])
def test_a_child_that_ends_or_stops_itself_hurts_itself(judge: Rig, number: signal.Signals) -> None:
    verdict = judge.attack(
        version(f"syscall(SYS_tgkill, getpid(), getpid(), {int(number)}); raise({int(number)});")
    )
    assert verdict.status in ("incorrect", "timeout"), verdict.reason
    refused(verdict, verdict.status, r"rep-verify\[warm-up\]")


def test_twin_that_signals_its_own_thread_is_accepted(judge: Rig) -> None:
    handler = "static volatile sig_atomic_t heard; static void hear(int n) { (void)n; heard = 1; }"
    judge.accepts(version("signal(SIGUSR1, hear); raise(SIGUSR1); if (heard) HONEST;", handler))
