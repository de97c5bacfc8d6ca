"""Right in some calls and wrong in others: the warm-up, the first few, every one from a certain number on."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

COUNTED = "static int calls; calls++; HONEST; if (WHEN) area[LEN_1D / 3] = 0.0;"


@pytest.mark.parametrize(
    ("when", "run"),
    [
        ("calls == 1", "warm-up"),
        ("calls > 1", "run 1"),
        ("calls >= 4", "run 3"),
        ("calls == 6", "run 5"),
        ("calls > 6", "canonical"),
    ],
    ids=[
        "skips the warm-up",
        "right in the warm-up alone",
        "garbage from the third timed call",
        "last run",
        "after",
    ],
)
def test_wrong_call_is_named(judge: Rig, when: str, run: str) -> None:
    verdict = judge.attack(version(COUNTED.replace("WHEN", when)))
    refused(verdict, "incorrect", rf"input 1 \(.*rep-verify\[{run}\] area\[")


def test_drift_after_twenty_calls_has_no_process_to_happen_in(judge: Rig) -> None:
    """Every process ends long before: a counter gains a submission nothing, and what was timed was right."""
    judge.accepts(version(COUNTED.replace("WHEN", "calls > 20")))


def test_counter_kept_in_a_file_does_not_add_up_over_processes(judge: Rig) -> None:
    body = """char name[] = "/tmp/calls"; int calls = 0, fd = open(name, O_RDWR | O_CREAT, 0600);
    if (read(fd, &calls, sizeof calls) < 0) abort();
    calls++;
    if (pwrite(fd, &calls, sizeof calls, 0) != sizeof calls) abort();
    close(fd); HONEST; if (calls > 20) area[0] += 1.0;"""
    judge.accepts(version(body))


def test_twin_that_counts_its_calls_is_accepted(judge: Rig) -> None:
    judge.accepts(version("static int calls; calls++; HONEST;"))
