"""Writing files so that no reader sees half of one, and reading those an agent may have tampered with."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any


def write_atomic(path: Path, text: str) -> None:
    """Write ``text`` beside ``path``, flush it to disk and rename it over; a link at ``path`` is replaced."""
    fd, side = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fchmod(handle.fileno(), 0o644)
            os.fsync(handle.fileno())
        Path(side).replace(path)
    except BaseException:
        Path(side).unlink(missing_ok=True)
        raise


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line with a single write, so that writers never interleave."""
    raw = (json.dumps(record) + "\n").encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, raw)
    finally:
        os.close(fd)


def read_untrusted(path: Path, limit: int = 8 * 1024 * 1024) -> bytes | None:
    """The content of a regular file an agent wrote, at most ``limit`` bytes; None for anything else.

    A link, a pipe or a device is never opened for real: each could lead out of the workspace or block.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as handle:
        raw = handle.read(limit + 1)
    return raw if len(raw) <= limit else None


def read_untrusted_json(path: Path) -> dict[str, Any] | None:
    """A JSON object an agent wrote, or None."""
    raw = read_untrusted(path)
    if raw is None:
        return None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
