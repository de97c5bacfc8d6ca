"""The main thread itself made to work on a draw before the clock of its call starts.

A signal that is due between two calls, a function of the C library that the runner calls: each can lead into
the submission's code while a draw is handed over.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_code import AHEAD, PATCH
from attack_rig import Rig, rig, version

KERNEL = "floyd_warshall"
BODY = "ahead_answer_call(d, N);"

TIMER = """static void due(int number) { (void)number; ahead_work(); }
static void arm(void)
{
    struct sigaction action = {.sa_handler = due, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, 0);
}
"""
SIGNALLED = """static pthread_t main_thread;
static void due(int number) { (void)number; ahead_work(); }
static void *ringer(void *unused)
{
    for (;;) { usleep(100); pthread_kill(main_thread, SIGUSR2); }
    return unused;
}
static void arm(void)
{
    struct sigaction action = {.sa_handler = due, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &action, 0);
    main_thread = pthread_self();
    pthread_t thread; pthread_create(&thread, 0, ringer, 0);
}
"""
HOOKED = """static ssize_t my_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
    ahead_work();
    return got;
}
static void arm(void) { patch("recvmsg", my_recvmsg); }
"""
HOOKED_SEND = """static ssize_t my_send(int fd, const void *frame, size_t bytes, int flags)
{
    ahead_work();
    return syscall(SYS_sendto, fd, frame, bytes, flags, 0, 0);
}
static void arm(void) { patch("send", my_send); }
"""
WAYS = {
    "timer": TIMER,
    "signals from a thread": SIGNALLED,
    "patched recvmsg": "#include <sys/socket.h>\n" + PATCH + HOOKED,
    "patched send": "#include <sys/socket.h>\n" + PATCH + HOOKED_SEND,
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Rig]:
    """Calls of some milliseconds."""
    with rig(rung_bytes=2**20) as made:
        yield made


def source(way: str) -> str:
    return version("static int armed; if (!armed++) arm();" + BODY, AHEAD + WAYS[way], KERNEL)


@pytest.mark.parametrize("way", WAYS)
def test_handler_that_works_while_a_draw_is_handed_over_gains_nothing(judge: Rig, way: str) -> None:
    judge.catches(source(way), "clock|between calls", KERNEL)


def test_twin_that_uses_a_timer_within_its_call_is_accepted(judge: Rig) -> None:
    before = "static volatile int late; static void due(int number) { late = number; }\n"
    body = """signal(SIGALRM, due); struct itimerval once = {{0, 0}, {1, 0}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &once, 0); HONEST; setitimer(ITIMER_REAL, &never, 0);"""
    judge.accepts(version(body, before, KERNEL), kernel=KERNEL)
