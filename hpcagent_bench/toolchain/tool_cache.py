"""Files that a compiler makes once and later processes reuse: keyed by everything that could change them."""

from __future__ import annotations

import functools
import hashlib
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from hpcagent_bench import paths


@functools.lru_cache(maxsize=32)
def compiler_version(compiler: str) -> str:
    """First line of ``compiler --version``; empty when it cannot be run."""
    try:
        done = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0]


@functools.lru_cache(maxsize=1)
def cpu_model() -> str:
    """What ``-march=native`` depends on: the processor's model and feature flags."""
    x86 = ("vendor_id", "cpu family", "model", "stepping", "flags")
    wanted = (*x86, "CPU implementer", "CPU part", "Features")
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return platform.machine()
    return "\n".join(line for line in lines if line.startswith(wanted)) or platform.machine()


def digest(parts: Iterable[str | bytes]) -> str:
    """BLAKE2b over length-prefixed parts, 32 hex digits."""
    sums = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        sums.update(len(raw).to_bytes(8, "little") + raw)
    return sums.hexdigest()


def cached(kind: str, key: str, name: str, make: Callable[[Path], None]) -> Path:
    """``<cache>/<kind>/<key>/<name>``, made by ``make(side_path)`` when absent.

    The file appears by rename, so processes that race make it twice and both find a whole one. ``make``
    raises when it cannot make the file; nothing is kept then.
    """
    target = paths.cache_root() / kind / key / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as folder:
        side = Path(folder) / name
        make(side)
        side.replace(target)
    return target
