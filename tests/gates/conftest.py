"""One cache and one judge for the session's gate tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpcagent_bench.harness.context import GradingContext
from tests.support import gate_rig


@pytest.fixture(scope="module")
def context() -> Iterator[GradingContext]:
    """A judge with one timed core."""
    with gate_rig.judge() as made:
        yield made
