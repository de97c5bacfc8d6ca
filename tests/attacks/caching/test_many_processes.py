"""Answers kept from call to call where every timed call has a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_rig import Rig, refused, rig, version

KEPT = """static double *kept;
if (kept) { memcpy(area, kept, LEN_1D * sizeof *area); return; }
HONEST; kept = malloc(LEN_1D * sizeof *kept); memcpy(kept, area, LEN_1D * sizeof *kept);"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Rig]:
    """The protocol whose sample is a process: each is warmed up on the same draw."""
    with rig(protocol="mwp4x5") as made:
        yield made


def test_answer_of_the_warm_up_is_refused(judge: Rig) -> None:
    refused(judge.attack(version(KEPT)), "incorrect", r"input 1 \(.*rep-verify\[run 1\] area")


def test_warm_up_recognised_from_the_last_process_gains_nothing(judge: Rig) -> None:
    """Every process starts with what it is given and nothing else: a file of the one before is not there."""
    body = """int fd = open("/tmp/answer", O_RDONLY); static int calls;
    HONEST; if (fd >= 0 && !calls) area[0] = NAN;
    if (fd < 0) { fd = open("/tmp/answer", O_WRONLY | O_CREAT, 0600); if (write(fd, area, 8) < 0) abort(); }
    calls++; close(fd);"""
    assert judge.attack(version(body)).status == "ok"


def test_twin_that_warms_up_a_buffer_is_accepted(judge: Rig) -> None:
    body = "static double *own; if (!own) own = calloc(LEN_1D, sizeof *own); HONEST; own[0] = area[0];"
    judge.accepts(version(body))
