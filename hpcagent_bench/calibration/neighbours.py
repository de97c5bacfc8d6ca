"""Busy neighbours on purpose: processes that compute without end, wherever the scheduler puts them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

COUNT = 2
END_S = 5.0

_LOOP = """
import os, sys
parent, value = int(sys.argv[1]), 1
print("busy", flush=True)
while os.getppid() == parent:  # never outlives whoever started it
    for _ in range(100_000):
        value = value * 48271 % 2147483647
"""


@contextlib.contextmanager
def busy(count: int = COUNT) -> Iterator[tuple[int, ...]]:
    """``count`` busy processes on the granted cores meanwhile; yields their ids, by which they are ended."""
    argv = [sys.executable, "-I", "-S", "-c", _LOOP, str(os.getpid())]
    loops = [subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for loop in loops:
            assert loop.stdout is not None
            loop.stdout.readline()  # computing from here on
        yield tuple(loop.pid for loop in loops)
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait(END_S)
            assert loop.stdout is not None
            loop.stdout.close()
