"""Ten thousand children: none can be made, no zombie is left, the next grade is what it was."""

from __future__ import annotations

import pytest
from attack_rig import Rig, version

BOMBS = {
    "fork": "fork() >= 0",
    "vfork": "vfork() >= 0",
    "clone": "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0",
    "clone with a namespace": "syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER | CLONE_NEWPID, 0, 0, 0, 0) >= 0",
    "clone sharing memory": "syscall(SYS_clone, SIGCHLD | CLONE_VM | CLONE_VFORK, 0, 0, 0, 0) >= 0",
    "clone3": "syscall(SYS_clone3, (uint64_t[11]){[4] = SIGCHLD}, 88) >= 0",
    "a program": 'execl("/bin/sh", "sh", "-c", "sleep 60", (char *)0) >= 0',
    "a program by descriptor": 'syscall(SYS_execveat, open("/bin/sleep", O_RDONLY), "", 0, 0, 0x1000) >= 0',
    "the standard library's": 'system("sleep 60") == 0 || popen("sleep 60", "r") != 0',
}


@pytest.mark.parametrize("name", BOMBS)
def test_ten_thousand_tries_make_no_child(judge: Rig, name: str) -> None:
    tries = 20 if "librar" in name else 10_000 // 24
    body = f"for (int k = 0; k < {tries}; k++) if ({BOMBS[name]}) _exit(0); HONEST;"
    judge.accepts(version(body))


def test_twin_that_makes_threads_instead_is_accepted(judge: Rig) -> None:
    nothing = "static void *nothing(void *p) { return p; }"
    twice = (
        "for (int k = 0; k < 20; k++) { pthread_t t; pthread_create(&t, 0, nothing, 0); pthread_join(t, 0); }"
    )
    judge.accepts(version(twice + "HONEST;", nothing))
