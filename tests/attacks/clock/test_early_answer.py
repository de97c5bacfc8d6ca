"""The answer of a call sent by the submission itself, with the call's own number, before the work is done."""

from __future__ import annotations

import re

import pytest
from attack_code import PATCH
from attack_rig import Rig, gains_nothing, said, version

from hpcagent_bench.harness.scoring import Verdict

EARLY = """#include <sys/socket.h>
struct done { uint32_t kind, pad; uint64_t nonce, inside, cpu; };
static int swallow;
static ssize_t my_send(int fd, const void *frame, size_t bytes, int flags)
{
    if (swallow && *(const uint32_t *)frame == 5) { swallow = 0; return bytes; }
    return syscall(SYS_sendto, fd, frame, bytes, flags, 0, 0);
}
/* The runner's GO frame lies on the stack: kind 4, nothing, the number of the call. */
static int answer_early(uint64_t inside)
{
    uint64_t *at = __builtin_frame_address(0);
    for (int k = 0; (char **)(at + k + 1) < environ; k++) {
        if (at[k] != 4 || at[k + 1] < 1ul << 32) continue;
        struct done done = {5, 0, at[k + 1], inside, inside};
        for (int fd = 3; fd < 4096; fd++)
            if (syscall(SYS_sendto, fd, &done, sizeof done, MSG_NOSIGNAL, 0, 0) == sizeof done) return 1;
    }
    return 0;
}
"""


def early(kernel: str, *, hide_second: bool, body: str = "") -> str:
    arm = 'static int armed; if (!armed++) patch("send", my_send); swallow = 1;' if hide_second else ""
    text = body or "answer_early(100); HONEST;"
    return version(arm + text, PATCH + EARLY, kernel)


@pytest.mark.parametrize("hide_second", [False, True], ids=["answered twice", "answered once"])
def test_answer_before_the_work_of_a_long_call_is_refused(judge: Rig, hide_second: bool) -> None:
    """The outputs are looked at when the answer comes, or what was done after it is counted."""
    source = early("floyd_warshall", hide_second=hide_second)
    judge.catches(source, "forged or repeated|elements differ|clock|ratio above", "floyd_warshall")


@pytest.mark.parametrize("claimed_ns", [100, 2000])
def test_answer_before_the_work_of_a_short_call_is_told_and_can_be_denied(
    judge: Rig, claimed_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the judge has seen an answer and stopped the child some 30 us pass: enough to finish such a call.

    No clock outside can tell, so a gain as small is marked on the grade, or, where the judge is told to be
    strict, not credited.
    """
    source = early("polygon_area_terms", hide_second=True, body=f"answer_early({claimed_ns}); HONEST;")
    verdict = judge.preview(source)
    told = "below what the clocks attest|this node can|clock|ratio above"
    if verdict.status == "ok":
        assert all(re.search(told, one.note + one.suspect) for one in verdict.inputs if one.ratio > 1.2)
    monkeypatch.setattr(judge.context.settings.record, "unattested", "suspect")
    gains_nothing_above(judge.preview(source), 1.2, told)


def gains_nothing_above(verdict: Verdict, ratio: float, reason: str) -> None:
    """Assert that a grade credits no input more than ``ratio``."""
    if verdict.status != "ok":
        gains_nothing(verdict, "forged or repeated|elements differ|protocol|" + reason)
    assert all(one.suspect or one.ratio <= ratio for one in verdict.inputs), said(verdict)


def test_own_answer_that_understates_the_time_is_flagged(judge: Rig) -> None:
    body = "HONEST; answer_early(100);"
    verdict = judge.preview(early("floyd_warshall", hide_second=True, body=body), kernel="floyd_warshall")
    gains_nothing(verdict, "clock|ratio above")


def test_twin_that_searches_its_own_stack_is_accepted(judge: Rig) -> None:
    body = "uint64_t here[64] = {0}; HONEST; if (here[LEN_1D % 64]) abort();"
    judge.accepts(version(body))
