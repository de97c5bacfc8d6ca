"""Where a driver's sockets lie: a short local path, removed even when its driver was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "hpcagent-driver-"
LOCK = "lock"
MAX_FOLDER = 60
"""A socket's address holds 107 bytes, and a run tree's paths are longer and may lie on a network."""


@contextlib.contextmanager
def socket_folder() -> Iterator[Path]:
    """A private folder held by a lock while this driver lives; folders of dead drivers are removed first."""
    parent = Path(tempfile.gettempdir())
    if len(str(parent)) > MAX_FOLDER:
        parent = Path("/tmp")
    for left in parent.glob(f"{PREFIX}*"):
        _remove_if_dead(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_dead(folder: Path) -> None:
    """Remove ``folder`` when nobody holds its lock; other users' folders cannot be opened and stay."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return
    finally:
        os.close(lock)
