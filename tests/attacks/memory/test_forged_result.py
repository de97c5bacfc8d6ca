"""A complete result written into the channel by the submission: by every descriptor, at every moment."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

FORGE = """static void forge(int kind)
{
    struct { uint32_t kind, pad; uint64_t nonce, inside, cpu; } frame = {kind, 0, 1, 10, 10};
    for (int fd = 0; fd < 4096; fd++)
        if (write(fd, &frame, kind == 3 ? 8 : sizeof frame) < 0) continue;
}
"""
CONSTRUCTED = FORGE + "__attribute__((constructor)) static void first(void) { MOMENT }\n"
MOMENTS = {
    "ready and done, then an end without a word": "forge(3); forge(5); _exit(0);",
    "done, then an end without a word": "forge(5); _exit(0);",
    "ready and done, then going on": "forge(3); forge(5);",
    "an end without a word": "_exit(0);",
}
CALLED = {
    "done during the call": "forge(5); HONEST;",
    "done after the work": "HONEST; forge(5);",
    "done, then an end": "HONEST; forge(5); _exit(0);",
    "ready during the call": "HONEST; forge(3);",
    "done by a thread": "pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); HONEST;",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_result_forged_by_a_constructor_is_refused(judge: Rig, moment: str) -> None:
    verdict = judge.attack(version("HONEST;", CONSTRUCTED.replace("MOMENT", MOMENTS[moment])))
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] (crash|refused): (exited|protocol)")


@pytest.mark.parametrize("way", CALLED)
def test_result_forged_in_a_call_is_refused(judge: Rig, way: str) -> None:
    before = FORGE + "static void *thread(void *unused) { forge(5); return unused; }\n"
    verdict = judge.attack(version("(void)thread;" + CALLED[way], before))
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] (crash|refused): (exited|protocol)")


def test_excuse_that_the_judge_failed_is_refused_as_the_childs_own_words(judge: Rig) -> None:
    before = """__attribute__((constructor)) static void first(void)
{
    struct { uint32_t kind, pad; char text[20]; } fail = {6, 0, "seal: the judge did"};
    for (int fd = 3; fd < 4096; fd++) if (write(fd, &fail, sizeof fail) < 0) continue;
}
"""
    refused(judge.attack(version("HONEST;", before)), "incorrect", "child: seal: the judge did")


def test_twin_that_prints_is_accepted(judge: Rig) -> None:
    judge.accepts(version('HONEST; printf("done in 10 ns\\n"); fprintf(stderr, "done\\n"); fflush(stdout);'))
