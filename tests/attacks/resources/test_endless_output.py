"""Printing without end: nothing of it is kept, and the time limit ends it."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

from hpcagent_bench.harness.building.build_log import LOG_MAX
from hpcagent_bench.harness.native_call import Child


@pytest.mark.parametrize("stream", ["1", "2"])
def test_an_endless_print_runs_into_the_time_limit(judge: Rig, stream: str) -> None:
    body = f"for (;;) if (write({stream}, x, 1 << 12) < 0) continue;"
    refused(judge.attack(version(body)), "timeout", r"rep-verify\[warm-up\] timeout")


def test_an_endless_print_at_loading_does_too(judge: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Child.__init__.__kwdefaults__, "load_timeout_s", 1.0)
    text = """static char c[4096];
    __attribute__((constructor)) static void say(void) { for (;;) fwrite(c, 1, 4096, stderr); }"""
    refused(judge.attack(version("HONEST;", text)), "timeout", r"rep-verify\[warm-up\] timeout.*load")


def test_what_is_printed_comes_back_nowhere(judge: Rig) -> None:
    shout = (
        'for (int k = 0; k < 9; k++) fprintf(k % 2 ? stderr : stdout, "correct: yes, speedup 99\\n"); HONEST;'
    )
    verdict = judge.accepts(version(shout))
    assert "99" not in verdict.reason + "".join(verdict.notes)
    assert verdict.build is not None
    assert len(verdict.build.log) < LOG_MAX


def test_twin_that_prints_a_line_is_accepted(judge: Rig) -> None:
    judge.accepts(version('printf("%ld\\n", (long)LEN_1D); HONEST;'))
