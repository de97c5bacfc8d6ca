"""A judge for the attacks of one file; the file passes only if the judge serves honest work afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import attack_rig
import pytest


@pytest.fixture(scope="module")
def judge() -> Iterator[attack_rig.Rig]:
    """One core, as a reference has."""
    with attack_rig.rig() as made:
        yield made


@pytest.fixture(scope="module")
def two_core_judge() -> Iterator[attack_rig.Rig]:
    """Two cores, for attacks that need a thread beside the call."""
    with attack_rig.rig(cores=(0, 1)) as made:
        yield made
