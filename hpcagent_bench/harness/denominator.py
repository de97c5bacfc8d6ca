"""The speedup denominator: which references race, who leads, what is remembered (scoring.md 1.4)."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hpcagent_bench import config
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError, did_you_mean

REFERENCE_KINDS = ("c", "numba")
"""References this judge can build and time."""

DEFAULT_LEADER = "numba"
LEADERS_FILE = Path(__file__).parent / "baseline_leaders.yaml"


@dataclass(frozen=True)
class Denominator:
    """A named denominator and the reference kinds it races, in the order written."""

    name: str
    kinds: tuple[str, ...]


def parse(name: str, key: str = "measurement.denominator") -> Denominator:
    """``c``, ``numba`` or ``best-of(numba,c)``; anything else is a UserError naming ``key``."""
    best = re.fullmatch(r"best-of\(([a-z,-]+)\)", name)
    kinds = tuple(best.group(1).split(",")) if best else (name,)
    for kind in kinds:
        if kind not in REFERENCE_KINDS:
            legal = ["best-of(numba,c)", *REFERENCE_KINDS]
            raise UserError(f"{key}={name}: no reference '{kind}'", did_you_mean(name, legal))
    return Denominator(name, kinds)


def for_kernel(kernel: Kernel, settings: config.Measurement) -> Denominator:
    """The denominator configured for the kernel's track; a kernel with a baseline of its own is refused."""
    if kernel.manifest.baseline is not None:
        raise UserError(
            f"kernel {kernel.name} is measured against its own baseline, which this judge does not time",
            "remove baseline from its manifest to race the references",
        )
    key = f"measurement.denominator.{kernel.track}"
    name = getattr(settings.denominator, kernel.track, None)
    if not isinstance(name, str):
        raise UserError(f"{key} is not configured", f"set {key} in conf/judge")
    return parse(name, key)


def credited(recorded: str | None, kernel: Kernel, settings: config.Measurement) -> bool:
    """Whether a grade with this recorded denominator may be credited (scoring.md 1.6)."""
    return recorded == for_kernel(kernel, settings).name


@dataclass(frozen=True)
class Remembered:
    """What the judge keeps of one raced input: times in ns per kind, and the budget a kind was cut at."""

    times: dict[str, tuple[int, ...]]
    cuts: dict[str, int]
    winner: str


@dataclass
class RaceMemory:
    """Winners and timings of this judge process; never written to disk (scoring.md 1.4)."""

    winners: dict[tuple[str, str, str], str] = field(default_factory=dict)
    timings: dict[tuple[str, str, str, int], Remembered] = field(default_factory=dict)

    def leader(self, kernel: str, preset: str, datatype: str, kinds: tuple[str, ...]) -> tuple[str, str]:
        """The expected winner and where that is known from: ``cache``, ``table`` or ``default``."""
        remembered = self.winners.get((kernel, preset, datatype))
        if remembered in kinds:
            return remembered, "cache"
        listed = load_leaders().get(kernel, {}).get(preset)
        if listed in kinds:
            return listed, "table"
        return (DEFAULT_LEADER if DEFAULT_LEADER in kinds else kinds[0]), "default"


def load_leaders(path: Path = LEADERS_FILE) -> dict[str, dict[str, str]]:
    """Recorded winners per kernel and preset; an absent file is an empty table."""
    if not path.exists():
        return {}
    table = yaml.safe_load(path.read_text()) or {}
    return {str(k): dict(v) for k, v in table.items()}


def cut_budget_ns(leader_times: list[int], settings: config.Measurement) -> int | None:
    """The longest a losing reference's rep may take: max(floor, factor x the leader's slowest rep)."""
    if settings.baseline_race == "complete" or not leader_times:
        return None
    return int(max(settings.early_stop_floor_s * 1e9, settings.early_stop_factor * max(leader_times)))


def fastest(times: dict[str, list[int]] | dict[str, tuple[int, ...]], kinds: tuple[str, ...]) -> str | None:
    """The kind with the smallest median among those that were timed; None when none was."""
    timed = [k for k in kinds if times.get(k)]
    return min(timed, key=lambda k: statistics.median(times[k])) if timed else None
