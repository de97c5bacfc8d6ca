"""One judge for the attacks over HTTP; it must serve, and grade an honest source, after each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_api import World


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("attacked"))
    yield made
    made.end()


@pytest.fixture
def world(served: World) -> Iterator[World]:
    """The judge; after the attack it still answers, and has said nothing it must not."""
    yield served
    assert served.judge.process.poll() is None
    assert served.healthy()
