"""Which granted cores are timed: one thread per physical core (scoring.md 1.3)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu")


def granted() -> frozenset[int]:
    """The hardware threads this thread may run on: its real affinity mask, whatever the machine has."""
    return frozenset(os.sched_getaffinity(0))


def siblings(core: int, system: Path = SYSTEM) -> frozenset[int]:
    """The hardware threads of ``core``'s physical core, itself included; only itself where nothing tells."""
    path = system / f"cpu{core}" / "topology" / "thread_siblings_list"
    try:
        return frozenset(_numbers(path.read_text().strip())) | {core}
    except (OSError, ValueError):
        return frozenset({core})


def one_per_physical_core(cores: Sequence[int], system: Path = SYSTEM) -> tuple[int, ...]:
    """The first granted hardware thread of every physical core, in the order given."""
    taken: set[int] = set()
    chosen = []
    for core in cores:
        if core not in taken:
            chosen.append(core)
            taken |= siblings(core, system)
    return tuple(chosen)


def surprise(cores: Sequence[int], before: frozenset[int], now: frozenset[int]) -> str:
    """What changed about the cores since the judge started, or an empty string.

    ``cores`` are the timed ones, ``before`` and ``now`` the affinity mask then and now: a judge that lost
    cores, or was given others, would time something else than it says.
    """
    missing = [core for core in cores if core not in now]
    if missing:
        return f"timed core {missing[0]} is no longer granted: granted are {as_list(now)}"
    if now != before:
        return f"the granted cores changed from {as_list(before)} to {as_list(now)} since the judge started"
    return ""


def strayed(pid: int, cores: Sequence[int]) -> frozenset[int]:
    """Cores outside ``cores`` that a thread of process ``pid`` may run on; empty once it is gone."""
    found: set[int] = set()
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found |= os.sched_getaffinity(int(task.name)) - set(cores)
    except OSError:
        return frozenset()
    return frozenset(found)


def as_list(cores: Iterable[int]) -> str:
    """Linux's list form: 0, 1 and 8 are ``0-1,8``."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and core == parts[-1][1] + 1:
            parts[-1][1] = core
        else:
            parts.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _numbers(text: str) -> list[int]:
    """Linux's list form read back: ``0-1,8`` is 0, 1 and 8."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found
