"""A cache of the test session's own, and no process or descriptor left behind by any test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session: the runner is built once."""
    return tmp_path_factory.mktemp("native-cache")


@pytest.fixture(autouse=True)
def own_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(session_cache))


def children() -> set[int]:
    """Processes whose parent is this one."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves a process or a descriptor."""
    before, descriptors = children(), open_descriptors()
    yield
    assert children() <= before
    assert open_descriptors() <= descriptors + 1  # the spawner thread may have come into being
