"""One real Slurm for the whole session, under a folder of its own, so it meddles with no other cluster."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm import devcluster


@pytest.fixture(scope="session")
def slurm_installed() -> None:
    """Skip what needs Slurm where it isn't installed."""
    missing = devcluster.missing_programs()
    if missing:
        pytest.skip(f"{missing[0]} is not installed; type: {devcluster.APT_LINE}")


@pytest.fixture
def empty_root() -> Iterator[Path]:
    """A root for one more cluster; short and open to all, which pytest's own folders are not."""
    parent = Path(tempfile.mkdtemp(prefix="devcluster-", dir="/tmp"))
    parent.chmod(0o755)
    root = parent / "one"
    yield root
    devcluster.down(root)
    shutil.rmtree(parent)


@pytest.fixture(scope="session")
def session_cluster(slurm_installed: None) -> Iterator[devcluster.Status]:
    """The session's cluster; ask for ``devcluster`` instead, which also points Slurm's commands at it."""
    parent = Path(tempfile.mkdtemp(prefix="devcluster-", dir="/tmp"))
    parent.chmod(0o755)
    try:
        yield devcluster.up(parent / "session")
    finally:
        devcluster.down(parent / "session")
        shutil.rmtree(parent)


@pytest.fixture(name="devcluster")
def cluster_in_use(
    session_cluster: devcluster.Status, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> devcluster.Status:
    """A running cluster that sbatch, sacct, submitit and the launcher use."""
    for key in [key for key in os.environ if key.startswith(("SLURM_", "SBATCH_"))]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("SLURM_CONF", str(session_cluster.slurm_conf))
    monkeypatch.chdir(tmp_path)
    return session_cluster


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """Wait for a condition that Slurm reaches on its own: ``eventually(lambda: ..., seconds=30)``."""

    def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "did not happen in time"
            time.sleep(0.1)

    return wait
