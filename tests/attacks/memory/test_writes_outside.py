"""Writing where nothing was asked for: behind the outputs, before them, into the inputs."""

from __future__ import annotations

import pytest
from attack_rig import Rig, gains_nothing, refused, unspoilt, version

BEHIND = {
    "one element": "area[LEN_1D] = 1.0;",
    "one byte": "((char *)(area + LEN_1D))[0] ^= 1;",
    "a whole vector too many": "for (int k = 0; k < 8; k++) area[LEN_1D + k] = k;",
    "what stood there plus one": "((unsigned char *)(area + LEN_1D))[3]++;",
}
INPUTS = {
    "an element": "((double *)x)[0] = 1.0;",
    "zeroes it all": "memset((void *)x, 0, LEN_1D * sizeof *x);",
    "the value it has": "*(volatile double *)&x[3] = x[3];",
}
PAGE = "void *page = (void *)((uintptr_t)x & ~4095ul); size_t bytes = (LEN_1D * sizeof *x + 4095) & ~4095ul;"
OPENED = {
    "made writable": "mprotect(page, bytes, PROT_READ | PROT_WRITE) == 0",
    "mapped again": "mremap(page, 0, bytes, MREMAP_MAYMOVE) != MAP_FAILED && "
    "mprotect(mremap(page, 0, bytes, MREMAP_MAYMOVE), bytes, PROT_READ | PROT_WRITE) == 0",
}


@pytest.mark.parametrize("name", BEHIND)
def test_write_behind_an_output_is_refused(judge: Rig, name: str) -> None:
    refused(judge.attack(version("HONEST;" + BEHIND[name])), "incorrect", "past the end of area|sanitizer")


def test_write_behind_an_output_in_one_timed_call_alone_is_refused(judge: Rig) -> None:
    body = "static int calls; HONEST; if (++calls == 4) area[LEN_1D + 1] = 0.0;"
    refused(judge.attack(version(body)), "incorrect", r"rep-verify\[run 3\].*past the end of area")


def test_write_before_an_output_is_refused(judge: Rig) -> None:
    refused(judge.attack(version("HONEST; area[-1] = 1.0;")), "incorrect", "SIGSEGV|sanitizer")


@pytest.mark.parametrize("name", INPUTS)
def test_write_into_an_input_is_refused(judge: Rig, name: str) -> None:
    refused(judge.attack(version(INPUTS[name] + "HONEST;")), "incorrect", "SIGSEGV")


@pytest.mark.parametrize("name", OPENED)
def test_input_cannot_be_opened_for_writing(judge: Rig, name: str) -> None:
    """Granted, it would spoil the answer; a correct grade says that it was not."""
    unspoilt(judge.preview(version(f"{PAGE} HONEST; if ({OPENED[name]}) area[0] = NAN;")))


def test_memory_laid_over_an_input_is_seen_by_the_submission_alone(judge: Rig) -> None:
    """It works on zeros from then on, the judge and the reference on what was drawn."""
    body = f"""{PAGE} HONEST;
    mmap(page, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);"""
    gains_nothing(judge.attack(version(body)), r"rep-verify\[run 1\]")


def test_twin_that_writes_all_of_its_output_and_its_workspace_is_accepted(judge: Rig) -> None:
    body = "HONEST; memset(workspace, 0xFF, workspace_size); area[LEN_1D - 1] += 0.0;"
    judge.accepts(version(body), workspace_bytes=100_000)


def test_write_behind_the_workspace_is_refused(judge: Rig) -> None:
    body = "HONEST; workspace[workspace_size] = 1;"
    verdict = judge.attack(version(body), workspace_bytes=100_000)
    refused(verdict, "incorrect", "past the end of|sanitizer|SIGSEGV")
