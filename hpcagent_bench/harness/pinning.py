"""Which granted cores are timed: one thread per physical core (scoring.md 1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu")


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


def _numbers(text: str) -> list[int]:
    """Linux's list form: ``0-1,8`` is 0, 1 and 8."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found
