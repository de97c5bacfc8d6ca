"""Asking for all memory there is, by every way there is to ask: the own limit ends it, the judge stays."""

from __future__ import annotations

import mmap
import os

import pytest
from attack_rig import Rig, refused, said, version

from hpcagent_bench.harness.runner import proc

MADV_NOHUGEPAGE = 15

BOMBS = {
    "heap": "for (;;) { char *volatile p = malloc(1 << 20); memset(p, 1, 1 << 20); }",
    "mapped": "for (;;) *(char *)mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) = 1;",
    "heap end": "for (;;) memset(sbrk(1 << 20), 1, 1 << 20);",
    "shared": "for (;;) *(char *)mmap(0, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) = 1;",
    "zero device": """int fd = open("/dev/zero", O_RDWR);
    for (;;) memset(mmap(0, 1 << 20, 3, MAP_SHARED, fd, 0), 1, 1 << 20);""",
    "private zero device": """int fd = open("/dev/zero", O_RDWR);
    for (;;) memset(mmap(0, 1 << 20, 3, MAP_PRIVATE, fd, 0), 1, 1 << 20);""",
    "memory file": 'int fd = memfd_create("bomb", 0); for (;;) if (write(fd, area, 4096) != 4096) abort();',
    "stack": "volatile char deep[900 << 20]; for (long k = sizeof deep - 1; k > 0; k -= 4096) deep[k] = 1;",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_memory_bomb_ends_in_its_own_process(judge: Rig, name: str) -> None:
    verdict = judge.attack(version(BOMBS[name] + "HONEST;"))
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] crash|memory")


def test_memory_in_a_constructor_is_refused_as_well(judge: Rig) -> None:
    text = version(
        "HONEST;",
        "__attribute__((constructor)) static void eat(void) { for (;;) memset(sbrk(1 << 20), 1, 1 << 20); }",
    )
    refused(judge.attack(text), "incorrect", r"rep-verify\[warm-up\] crash.*\(load\)|memory")


def test_tables_of_pages_that_are_only_read_count() -> None:
    """A GiB that is only read takes no memory but 2 MiB of tables: 8 bytes for each of its pages."""
    before = proc.usage(os.getpid())[1]
    read = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
    read.madvise(MADV_NOHUGEPAGE)
    assert not any(read[k] for k in range(0, 1 << 30, 4096))
    grown = proc.usage(os.getpid())[1] - before
    read.close()
    assert grown >= 2 << 20


def test_twin_within_its_memory_is_accepted(judge: Rig) -> None:
    verdict = judge.accepts(version("char *p = malloc(64 << 20); memset(p, 1, 64 << 20); free(p); HONEST;"))
    assert verdict.solved, said(verdict)
