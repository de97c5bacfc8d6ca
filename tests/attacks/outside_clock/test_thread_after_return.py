"""A result that a thread finishes after the call has returned."""

from __future__ import annotations

import pytest
from attack_rig import KERNEL, Rig, gains_nothing, refused, version

LATE = """static double *area_; static const double *x_, *y_; static int64_t n_;
static volatile int wanted;
static void *work(void *unused)
{
    for (;;) {
        while (!wanted) {}
        wanted = 0;
        PAUSE
        honest_work(area_, x_, y_, n_, 0, 0);
    }
    return unused;
}
"""
BODY = """static int begun; pthread_t thread;
area_ = area; x_ = x; y_ = y; n_ = LEN_1D;
if (!begun++) pthread_create(&thread, 0, work, 0);
wanted = 1;"""


def test_result_finished_later_is_refused(two_core_judge: Rig) -> None:
    source = version(BODY, LATE.replace("PAUSE", "usleep(8000);"))
    refused(two_core_judge.attack(source), "incorrect", r"rep-verify\[warm-up\]")


def test_result_finished_in_the_last_moment_gains_nothing(
    two_core_judge: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread runs on, on a core of its own, while the answer is on its way: some microseconds."""
    monkeypatch.setattr(two_core_judge.context.settings.record, "unattested", "suspect")
    source = version(BODY, LATE.replace("PAUSE", ""))
    gains_nothing(two_core_judge.preview(source), r"elements differ|protocol: computed|clock")


def test_result_finished_by_a_forked_child_is_refused(judge: Rig) -> None:
    body = "if (fork() == 0) { HONEST; _exit(0); }"
    refused(judge.attack(version(body)), "incorrect", r"rep-verify\[warm-up\]")


@pytest.mark.parametrize(
    "flags", ["CLONE_VM", "CLONE_VM | CLONE_VFORK", "CLONE_VM | CLONE_FILES | CLONE_SIGHAND"]
)
def test_result_finished_by_a_process_that_shares_memory_is_refused(judge: Rig, flags: str) -> None:
    before = """static void *args[4]; static int64_t n; static char stack[1 << 16];
static int work(void *unused)
{ (void)unused; honest_work(args[0], args[1], args[2], n, 0, 0); return 0; }
"""
    body = f"""args[0] = area; args[1] = (void *)x; args[2] = (void *)y; n = LEN_1D;
    clone(work, stack + sizeof stack, {flags}, 0);"""
    refused(judge.attack(version(body, before)), "incorrect", r"rep-verify\[warm-up\]")


def test_twin_that_waits_for_its_thread_is_accepted(two_core_judge: Rig) -> None:
    before = "struct job { double *area; const double *x, *y; int64_t n; };\n"
    before += """static void *work(void *job)
{ struct job *j = job; honest_work(j->area, j->x, j->y, j->n, 0, 0); return 0; }
"""
    body = """struct job job = {area, x, y, LEN_1D}; pthread_t thread;
    pthread_create(&thread, 0, work, &job); pthread_join(thread, 0);"""
    two_core_judge.accepts(version(body, before))
    assert KERNEL in two_core_judge.graded
