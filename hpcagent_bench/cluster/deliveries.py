"""Files that requests name in the shared folder: opened where they really lie, read once, bounded."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.cluster.refusals import Refused

SHARED = "/shared/"
"""How agents call the shared folder."""

PRIVATE = "agent-"
"""How the folders of single agents begin; FOLDERS says whose each is."""

FOLDERS = "agent-folders.jsonl"
LIBRARIES = "libraries"
"""Folder of delivered libraries in the judge's own place."""


@dataclass(frozen=True)
class Shared:
    """The shared folder as one caller may read it; ``episode`` None is a person, who may read all of it."""

    folder: Path
    episode: str | None = None

    @contextlib.contextmanager
    def open(self, name: str, what: str, limit: int) -> Iterator[int]:
        """A descriptor of the regular file ``name`` of at most ``limit`` bytes; Refused says what is wrong.

        Links are followed first and the place they lead to is checked; it is then opened folder by folder,
        following nothing, so that what is swapped in between is refused. A pipe or a device never blocks.
        """
        root = self.folder.resolve()
        try:
            place = (self.folder / name.removeprefix(SHARED)).resolve()
            if not place.is_relative_to(root) or place == root:
                raise Refused(400, f"{what} {name!r} is not a file in the shared folder")
            parts = place.relative_to(root).parts
            self._own(parts[0], f"{what} {name!r}")
            descriptor = _open_below(root, parts)
        except (OSError, ValueError, RuntimeError):
            raise Refused(400, f"{what} {name!r} is not a file in the shared folder") from None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Refused(400, f"{what} {name!r} is not a file in the shared folder")
            if not 0 < found.st_size <= limit:
                raise Refused(400, f"{what} {name!r} has {found.st_size} bytes; 1 to {limit} are taken")
            yield descriptor
        finally:
            os.close(descriptor)

    def _own(self, top: str, named: str) -> None:
        """Refuse the folder of another agent."""
        if self.episode is None or not top.startswith(PRIVATE):
            return
        owner = None
        with contextlib.suppress(OSError):
            for line in (self.folder.parent / FOLDERS).read_text().splitlines():
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if record.get("folder") == top:
                        owner = record.get("episode_id")
        if owner != self.episode:
            raise Refused(400, f"{named} lies in another agent's folder")


def _open_below(root: Path, parts: tuple[str, ...]) -> int:
    """Open ``parts`` below ``root`` one after the other, refusing links; the caller closes the file."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts[:-1]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            inner = os.open(part, flags, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(parts[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)


def _read(descriptor: int, limit: int) -> bytes:
    """At most ``limit`` bytes, however the file grows meanwhile."""
    held = bytearray()
    while len(held) < limit:
        part = os.read(descriptor, min(1 << 20, limit - len(held)))
        if not part:
            break
        held += part
    return bytes(held)


def read_source(shared: Shared, name: str, wanted: str, limit: int) -> str:
    """The text of ``source_file``, which must be called ``wanted``."""
    if Path(name).name != wanted:
        raise Refused(400, f"source_file must be called {wanted}, not {Path(name).name!r}")
    with shared.open(name, "source_file", limit) as descriptor:
        try:
            return _read(descriptor, limit).decode("utf-8")
        except (OSError, ValueError):
            raise Refused(400, f"source_file {name!r} cannot be read as UTF-8 text") from None


def copy_library(shared: Shared, name: str, work: Path, limit: int) -> Path:
    """A copy of the shared library ``name`` at the judge's own place, made now: no later change counts."""
    if not name.endswith(".so"):
        raise Refused(400, f"library must be a shared library, NAME.so, not {Path(name).name!r}")
    with shared.open(name, "library", limit) as descriptor:
        try:
            body = _read(descriptor, limit)
        except OSError:
            raise Refused(400, f"library {name!r} cannot be read") from None
    if not body.startswith(b"\x7fELF"):
        raise Refused(400, f"library {name!r} is not an ELF shared library")
    folder = work / LIBRARIES
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / f"{secrets.token_hex(8)}.so"
    copy.write_bytes(body)
    copy.chmod(0o500)
    return copy
