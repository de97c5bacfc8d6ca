"""A process that never gets ready for its next input is no slow one, which would be credited half."""

from __future__ import annotations

import pytest
from attack_code import PATCH
from attack_rig import Rig, refused, version

from hpcagent_bench.harness.native_call import Child

HOOK = """#include <sys/socket.h>
static ssize_t my_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
    WHEN for (;;) pause();
    return got;
}
"""
BODY = 'static int armed; if (!armed++) patch("recvmsg", my_recvmsg); HONEST;'


def hooked(when: str) -> str:
    return version(BODY, PATCH + HOOK.replace("WHEN", when))


def test_hang_while_an_input_is_handed_over_is_refused(judge: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Child.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Child.__init__.__kwdefaults__, "load_timeout_s", 1.5)
    verdict = judge.attack(hooked(""))
    refused(verdict, "timeout", r"rep-verify\[run 1\] timeout: no answer within 1.5 s \(load\)")


def test_constructor_that_never_ends_is_refused(judge: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Child.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Child.__init__.__kwdefaults__, "load_timeout_s", 1.5)
    before = "__attribute__((constructor)) static void first(void) { for (;;) pause(); }\n"
    verdict = judge.attack(version("HONEST;", before))
    refused(verdict, "timeout", r"rep-verify\[warm-up\] timeout: no answer within 1.5 s \(load\)")


def test_twin_that_sleeps_in_its_first_call_is_accepted(judge: Rig) -> None:
    judge.accepts(version("static int calls; if (!calls++) usleep(20000); HONEST;"))
