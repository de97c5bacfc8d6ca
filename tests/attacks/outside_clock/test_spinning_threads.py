"""Threads that go on spinning when their work is done, in wait for the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_rig import Rig, rig, version

SPIN = """static void *spin(void *unused) { volatile long turns = 0; for (;;) turns++; return unused; }
__attribute__((constructor)) static void first(void) { pthread_t t; pthread_create(&t, 0, spin, 0); }
"""


@pytest.fixture(scope="module")
def two_core_judge() -> Iterator[Rig]:
    """Input sets that take some time to hand over."""
    with rig(cores=(0, 1), rung_bytes=2**20) as made:
        yield made


def test_thread_that_spins_between_calls_is_caught(two_core_judge: Rig) -> None:
    two_core_judge.catches(version("HONEST;", SPIN), "computed|clock|CPU time", workspace_bytes=64 << 20)


def test_twin_with_openmp_is_accepted(two_core_judge: Rig) -> None:
    """The runtime is told to sleep where it would spin; what a source asks for later comes too late."""
    before = """#include <omp.h>
__attribute__((constructor)) static void first(void)
{ setenv("OMP_WAIT_POLICY", "active", 1); setenv("GOMP_SPINCOUNT", "infinity", 1); }
"""
    body = """
#pragma omp parallel for
    for (int64_t i = 0; i < LEN_1D; i++) {
        int64_t before = i ? i - 1 : LEN_1D - 1;
        area[i] = (x[i] + x[before]) * (y[i] - y[before]);
    }"""
    two_core_judge.accepts(version(body, before))
