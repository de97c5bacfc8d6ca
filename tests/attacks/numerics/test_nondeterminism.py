"""Wrong now and then: a data race, a wrong answer by chance. How often such a one is accepted is printed."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

GRADES = 8
CHANCE = """HONEST;
struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
uint64_t h = (t.tv_nsec + 0x9E3779B97F4A7C15ul) * 0xBF58476D1CE4E5B9ul;
h ^= h >> 29; h *= 0x94D049BB133111EBul;
if ((h >> 33) % 1000 < WRONG) area[LEN_1D / 2] += 1.0;"""


@pytest.mark.parametrize(("per_mille", "at_most"), [(300, 0), (100, 3)])
def test_answer_wrong_by_chance_is_rarely_accepted(
    judge: Rig, per_mille: int, at_most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A grade has 28 timed and canonical calls, five held-out ones and those of the verification."""
    source = version(CHANCE.replace("WRONG", str(per_mille)))
    statuses = [judge.attack(source).status for _ in range(GRADES)]
    accepted = statuses.count("ok")
    with capsys.disabled():
        print(f"\n[wrong in {per_mille / 10:g} % of calls: accepted {accepted} of {GRADES} grades]")
    assert accepted <= at_most
    assert set(statuses) <= {"ok", "incorrect", "overfit"}


SUM = """static double sum; static const double *a_; static int64_t n_; static int here;
static void *part(void *second)
{
    volatile double *shared = &sum;
    __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < 2) {}
    for (int64_t i = second ? n_ / 2 : 0; i < (second ? n_ : n_ / 2); i++) {
        double read = *shared;
        if (i % 64 == 0) sched_yield();
        *shared = read + a_[i];
    }
    return 0;
}
"""
BODY = """pthread_t t; sum = 0; here = 0; a_ = a; n_ = LEN_1D;
pthread_create(&t, 0, part, &sum); part(0); pthread_join(t, 0);
sum_out[0] = sum;"""


def test_race_between_threads_is_refused(two_core_judge: Rig) -> None:
    """Both add to one number without asking each other, so that additions get lost."""
    kernel = "tsvc_2_s311"
    verdict = two_core_judge.attack(version(BODY, SUM, kernel), kernel=kernel)
    refused(verdict, "incorrect", "rep-verify|independent_verify")


def test_twin_whose_threads_lock_the_sum_is_accepted(two_core_judge: Rig) -> None:
    kernel = "tsvc_2_s311"
    before = SUM.replace("volatile double *shared = &sum;", "double mine = 0;").replace("*shared", "mine")
    add = "    pthread_mutex_lock(&lock); sum += mine; pthread_mutex_unlock(&lock);\n"
    before = before.replace("    return 0;", add + "    return 0;")
    before = "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n" + before
    two_core_judge.accepts(version(BODY, before, kernel), kernel=kernel)
