"""Something left by one process of a submission for the next, or by one submission for the next.

Each source leaves the number of its process wherever it can, and spoils its answer when it finds another's: a
correct grade shows that nothing was found. Those that leave something in a place of their own also make sure,
from the second call on, that they find their own mark, so that the test tests something.
"""

from __future__ import annotations

import pytest
from attack_rig import Rig, unspoilt, version

MARK = """static uint64_t mark;
__attribute__((constructor)) static void draw_mark(void)
{
    if (syscall(SYS_getrandom, &mark, sizeof mark, 0) != sizeof mark) abort();
}
static int calls;
"""

FILE = """static int spoilt(const char *name, int must_stay)
{
    uint64_t found = 0;
    int fd = open(name, O_RDONLY);
    int there = fd >= 0 && read(fd, &found, sizeof found) == sizeof found;
    if (fd >= 0) close(fd);
    if (there) return found != mark;
    if (must_stay && calls > 1) return 1;
    fd = open(name, O_WRONLY | O_CREAT, 0666);
    if (fd >= 0) { if (write(fd, &mark, sizeof mark) < 0) {} close(fd); }
    return 0;
}"""

WRITABLE = ("/tmp/left", "/dev/shm/left")
ELSEWHERE = (
    "/var/tmp/left", "left", "../left", "/grading/left", "/run/left", "/home/left", "/root/left", "/dev/left",
    "/usr/lib/left", "/proc/self/left", "/sys/left", "/run/user/1000/left",
    "/dev/mqueue/left", "/dev/pts/left",
)  # fmt: skip

SHARED = {
    "environment": """char *old = getenv("HPC_LEFT");
        if (old ? strtoull(old, 0, 16) != mark : calls > 1) spoilt = 1;
        char text[32]; snprintf(text, sizeof text, "%llx", (unsigned long long)mark);
        setenv("HPC_LEFT", text, 1);""",
    "POSIX shared memory": """int fd = shm_open("/hpc-left", O_RDWR | O_CREAT, 0666); uint64_t old = 0;
        if (fd >= 0) {
            if (pread(fd, &old, sizeof old, 0) == sizeof old && old != mark) spoilt = 1;
            if (pwrite(fd, &mark, sizeof mark, 0) < 0) {}
            close(fd);
        }""",
    "System V shared memory": """int id = shmget(0x6870, 4096, IPC_CREAT | 0666);
        if (id >= 0) {
            volatile uint64_t *at = shmat(id, 0, 0);
            if (at != (void *)-1) { if (*at && *at != mark) spoilt = 1; *at = mark; }
        }""",
    "System V message queue": """int id = msgget(0x6870, IPC_CREAT | 0666);
        struct { long type; uint64_t mark; } note = {1, 0};
        if (id >= 0) {
            if (msgrcv(id, &note, 8, 0, IPC_NOWAIT) == 8 && note.mark != mark) spoilt = 1;
            note.type = 1; note.mark = mark; msgsnd(id, &note, 8, IPC_NOWAIT);
        }""",
    "System V semaphore": """int id = semget(0x6870, 1, IPC_CREAT | 0666);
        if (id >= 0) { int old = semctl(id, 0, GETVAL); if (old && calls == 1) spoilt = 1;
            semctl(id, 0, SETVAL, 1); }""",
    "key of the kernel's keyring": """uint64_t old = 0;
        long key = syscall(SYS_request_key, "user", "hpc-left", 0, -4);
        if (key >= 0 && syscall(SYS_keyctl, 11, key, &old, 8) == 8 && old != mark) spoilt = 1;
        syscall(SYS_add_key, "user", "hpc-left", &mark, 8, -4);""",
    "abstract socket": """struct sockaddr_un place = {AF_UNIX, "\\0hpc-left"};
        int held = socket(AF_UNIX, SOCK_DGRAM, 0);
        if (held >= 0 && bind(held, (void *)&place, sizeof place) != 0 && calls == 1) spoilt = 1;""",
}
EXTRA = """#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
"""


def accepted_twice(judge: Rig, source: str) -> None:
    """Four processes a grade and more, and then another grade: none finds what another left."""
    for _ in range(2):
        unspoilt(judge.attack(source))


@pytest.mark.parametrize("place", WRITABLE)
def test_file_is_gone_with_its_process(judge: Rig, place: str) -> None:
    body = f'calls++; HONEST; if (spoilt("{place}", 1)) area[0] = NAN;'
    accepted_twice(judge, version(body, MARK + FILE))


def test_file_nowhere_else(judge: Rig) -> None:
    tries = " || ".join(f'spoilt("{place}", 0)' for place in ELSEWHERE)
    accepted_twice(judge, version(f"calls++; HONEST; if ({tries}) area[0] = NAN;", MARK + FILE))


@pytest.mark.parametrize("way", SHARED)
def test_nothing_is_shared_with_the_next_process(judge: Rig, way: str) -> None:
    body = f"calls++; HONEST; int spoilt = 0; {SHARED[way]} if (spoilt) area[0] = NAN;"
    accepted_twice(judge, version(body, EXTRA + MARK))


END = """static uint64_t *at;
if (!at) {
    static unsigned char page; char *end = (char *)(((uintptr_t)(area + LEN_1D) + 4095) & ~4095ul);
    while (mincore(end, 1, &page) == 0) end += 4096;
    at = (uint64_t *)end - 1;
}
calls++; HONEST;
if (*at ? *at != mark : calls > 1) area[0] = NAN;
*at = mark;"""


def test_end_of_the_memory_that_outputs_lie_in_is_clean(judge: Rig) -> None:
    """The judge uses it again for whoever comes next."""
    for _ in range(3):
        unspoilt(judge.preview(version(END, MARK)))


def test_twin_that_uses_a_scratch_file_is_accepted(judge: Rig) -> None:
    body = """int fd = open("/tmp/scratch", O_RDWR | O_CREAT | O_TRUNC, 0600); HONEST;
    size_t bytes = LEN_1D * sizeof *area;
    if (pwrite(fd, area, bytes, 0) != (ssize_t)bytes || pread(fd, area, bytes, 0) != (ssize_t)bytes) abort();
    close(fd);"""
    judge.accepts(version(body))
