"""A thread that works on a draw while it is handed over, before the clock of its call starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_code import AHEAD
from attack_rig import Rig, rig, version

KERNEL = "floyd_warshall"
SLOW_LOAD = 192 << 20
"""A workspace this large takes some time to zero."""

WATCH = (
    AHEAD
    + """static void *watch(void *unused)
{
    for (;;) { ahead_work(); sched_yield(); }
    return unused;
}
static void *sleeper(void *unused) { for (;;) pause(); return unused; }
"""
)
BODY = "ahead_answer_call(d, N);"


@pytest.fixture(scope="module")
def two_core_judge() -> Iterator[Rig]:
    """Calls so long that many threads may not spend as much while they fall asleep."""
    with rig(cores=(0, 1), rung_bytes=2**21) as made:
        yield made


def early(companions: int, *, constructor: bool) -> str:
    start = f"""static void begin(void)
{{
    pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 1 << 16);
    pthread_t thread; pthread_create(&thread, 0, watch, 0);
    for (int k = 0; k < {companions}; k++) pthread_create(&thread, &small, sleeper, 0);
}}
"""
    if constructor:
        return version(BODY, WATCH + "__attribute__((constructor))" + start, KERNEL)
    return version("static int begun; if (!begun++) begin();" + BODY, WATCH + start, KERNEL)


@pytest.mark.parametrize("constructor", [True, False], ids=["from a constructor", "from the first call"])
@pytest.mark.parametrize("companions", [0, 40], ids=["alone", "among sleepers"])
def test_thread_that_works_while_a_draw_is_handed_over_gains_nothing(
    two_core_judge: Rig, companions: int, constructor: bool
) -> None:
    source = early(companions, constructor=constructor)
    two_core_judge.catches(source, "clock|between calls", KERNEL, workspace_bytes=SLOW_LOAD)


def test_twin_whose_helper_sleeps_between_calls_is_accepted(two_core_judge: Rig) -> None:
    before = """static sem_t go, done; static double *at; static int64_t n;
static void *helper(void *unused)
{
    for (;;) {
        while (sem_wait(&go)) {}
        honest_work(at, n, 0, 0);
        sem_post(&done);
    }
    return unused;
}
__attribute__((constructor)) static void begin(void)
{
    sem_init(&go, 0, 0); sem_init(&done, 0, 0);
    pthread_t thread; pthread_create(&thread, 0, helper, 0);
}
"""
    body = "at = d; n = N; sem_post(&go); while (sem_wait(&done)) {}"
    two_core_judge.accepts(
        version(body, "#include <semaphore.h>\n" + before, KERNEL), kernel=KERNEL, workspace_bytes=1 << 20
    )
