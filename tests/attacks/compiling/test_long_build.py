"""Time spent in the compiler is no time of the call: neither a way to be stopped nor one to be excused."""

from __future__ import annotations

from attack_rig import Rig, refused, version

LONG = '__asm__(".text\\n.rept 6000000\\nnop\\n.endr\\n");'


def test_a_call_is_not_excused_by_a_long_build(judge: Rig) -> None:
    judge.context.settings.timeouts.kernel_s_override = 1.0
    verdict = judge.preview(version("for (;;) pause();", LONG))
    refused(verdict, "timeout", r"rep-verify\[warm-up\] timeout")


def test_twin_that_builds_longer_than_a_call_may_take_is_graded(judge: Rig) -> None:
    judge.context.settings.timeouts.compile_s = 75.0
    judge.context.settings.timeouts.kernel_s_override = 1.0
    assert judge.preview(version("HONEST;", LONG)).status == "ok"
