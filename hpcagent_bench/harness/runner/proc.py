"""What the kernel says of a running process, read from outside. A process that is gone has nothing: zeros."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STANDING = (b"T", b"t", b"Z", b"X")
"""States of a thread that does not run: stopped, traced, dead."""


@dataclass(frozen=True)
class Budget:
    """What a child may hold at any time: threads, and bytes of memory of its own (resident or locked)."""

    threads: int
    memory_bytes: int | None

    def excess(self, pid: int) -> str:
        """How the process is beyond the budget, empty when it is not."""
        try:
            threads, held = usage(pid)
        except (OSError, ValueError):
            return ""
        if threads > self.threads:
            return f"more than {self.threads} threads"
        if self.memory_bytes is not None and held > self.memory_bytes:
            return f"more memory than {self.memory_bytes >> 20} MiB"
        return ""


def _read(path: str, room: int = 1 << 16) -> bytes:
    """The head of a file of /proc, in one go: the judge reads these around calls it times."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, room)
    finally:
        os.close(descriptor)


def usage(pid: int) -> tuple[int, int]:
    """(threads, bytes of private memory resident or locked), without memory shared with the judge.

    Page tables count: memory that is only read costs nothing else, however much of it is touched.
    """
    fields = dict.fromkeys((b"Threads", b"RssAnon", b"VmLck", b"VmPTE", b"VmSwap"), 0)
    for line in _read(f"/proc/{pid}/status").splitlines():
        key, _, rest = line.partition(b":")
        if key in fields:
            fields[key] = int(rest.split()[0])
    private = max(fields[b"RssAnon"] + fields[b"VmSwap"], fields[b"VmLck"])
    return fields[b"Threads"], private + fields[b"VmPTE"] << 10


def cpu_ns(pid: int) -> int:
    """CPU time of all threads so far: CLOCK_PROCESS_CPUTIME_ID of another process, exact to the moment."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def background_cpu_ns(pid: int) -> int:
    """CPU time of the threads but the first one; 0 where the kernel does not say."""
    try:
        first = int(_read(f"/proc/{pid}/task/{pid}/schedstat", 128).split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, cpu_ns(pid) - first)


def _tasks(pid: int) -> list[str]:
    with os.scandir(f"/proc/{pid}/task") as entries:
        return [entry.name for entry in entries]


def threads(pid: int) -> int:
    """How many threads there are."""
    try:
        return len(_tasks(pid))
    except OSError:
        return 0


def stands(pid: int) -> bool | None:
    """Whether no thread runs; None when the process cannot be read."""
    try:
        for task in _tasks(pid):
            state = _read(f"/proc/{pid}/task/{task}/stat", 512).rpartition(b") ")[2][:1]
            if state not in STANDING:
                return False
    except OSError:
        return None
    return True


def mapped_files(pid: int) -> frozenset[str]:
    """Names of the files and libraries in the process' memory."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(Path(line.split(maxsplit=5)[5]).name for line in lines if "/" in line)
