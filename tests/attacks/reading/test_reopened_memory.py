"""Changing what the judge reads: inputs reopened for writing, protected pages, a memory file."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

DENIED = {
    "the memory file of the process": 'open("/proc/self/mem", O_RDWR) >= 0',
    "a descriptor by its name": 'open("/dev/fd/3", O_RDWR) >= 0 || open("/proc/self/fd/3", O_RDWR) >= 0',
    "inputs made writable": "mprotect((void *)((uintptr_t)x & ~4095UL), 4096, PROT_READ | PROT_WRITE) == 0",
    "memory of another process": "syscall(SYS_process_vm_writev, 1, 0, 0, 0, 0, 0) == 0",
    "a descriptor of another process": "syscall(SYS_pidfd_open, 1, 0) >= 0",
}


@pytest.mark.parametrize("name", DENIED)
def test_there_is_no_way_to_write_what_the_judge_gave(judge: Rig, name: str) -> None:
    judge.accepts(version(f"if ({DENIED[name]}) return; HONEST;"))


def test_inputs_mapped_anew_change_the_childs_view_alone(judge: Rig) -> None:
    """Zeroes over its own inputs make zero the answer of both sides only if the judge looked at them."""
    anew = """uintptr_t from = (uintptr_t)x & ~4095UL;
    mmap((void *)from, LEN_1D * 8, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HONEST;"""
    verdict = judge.attack(version(anew))
    refused(verdict, "incorrect", r"rep-verify\[warm-up\]")


def test_writing_an_input_is_a_crash(judge: Rig) -> None:
    refused(judge.attack(version("((double *)x)[1] = 0; HONEST;")), "incorrect", r"crash: .*SIGSEGV")


def test_twin_that_copies_its_inputs_and_changes_the_copy_is_accepted(judge: Rig) -> None:
    copy = """double *mine = malloc(LEN_1D * sizeof *mine); memcpy(mine, x, LEN_1D * sizeof *mine);
    mine[0] += 0; HONEST; free(mine);"""
    judge.accepts(version(copy))
