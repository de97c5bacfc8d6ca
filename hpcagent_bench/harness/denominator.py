"""The speedup denominator: which references race, who leads, what is remembered (scoring.md 1.4)."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml

from hpcagent_bench import config
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError, did_you_mean

ORACLE_KINDS = ("c", "numba")
"""References that may grade: what the oracle of scoring.md 1.2 is taken from."""

REFERENCE_KINDS = (*ORACLE_KINDS, "c-autopar", "numpy", "vendored")
"""References this judge can build and time."""

DEFAULT_LEADER = "numba"
LEADERS_FILE = Path(__file__).parent / "baseline_leaders.yaml"


@dataclass(frozen=True)
class Denominator:
    """A named denominator and the reference kinds it races, in the order written."""

    name: str
    kinds: tuple[str, ...]


def parse(name: str, key: str = "measurement.denominator") -> Denominator:
    """A reference kind, or ``best-of(kind,...)`` of some; anything else is a UserError naming ``key``."""
    best = re.fullmatch(r"best-of\(([a-z,-]+)\)", name)
    kinds = tuple(best.group(1).split(",")) if best else (name,)
    for kind in kinds:
        if kind == "torch-autotune":
            raise UserError(
                f"{key}={name}: this judge has no PyTorch references to time",
                f"set {key} to another denominator",
            )
        if kind not in REFERENCE_KINDS:
            legal = ["best-of(numba,c)", "best-of(numba,c,c-autopar)", *REFERENCE_KINDS]
            raise UserError(f"{key}={name}: no reference '{kind}'", did_you_mean(name, legal))
    if len(set(kinds)) != len(kinds):
        raise UserError(f"{key}={name} names a reference twice", "name each once")
    return Denominator(name, kinds)


def for_kernel(kernel: Kernel, settings: config.Measurement) -> Denominator:
    """The denominator of the kernel: that configured for its track, or the baseline it ships itself."""
    if kernel.manifest.baseline is not None:
        return Denominator("vendored", ("vendored",))
    key = f"measurement.denominator.{kernel.track}"
    name = getattr(settings.denominator, kernel.track, None)
    if not isinstance(name, str):
        raise UserError(f"{key} is not configured", f"set {key} in conf/judge")
    chosen = parse(name, key)
    if "vendored" in chosen.kinds:
        raise UserError(
            f"{key}={name}, but kernel {kernel.name} ships no baseline of its own",
            "set best-of(numba,c): a kernel with a baseline in its manifest is measured against that anyway",
        )
    return chosen


def credited(recorded: str | None, kernel: Kernel, settings: config.Measurement) -> bool:
    """Whether a grade with this recorded denominator may be credited (scoring.md 1.6)."""
    return recorded == for_kernel(kernel, settings).name


@dataclass(frozen=True)
class Remembered:
    """What the judge keeps of one raced input: times in ns per kind, and the budget a kind was cut at."""

    times: dict[str, tuple[int, ...]]
    cuts: dict[str, int]
    winner: str


class TimingKey(NamedTuple):
    """What baseline timings are remembered by: timings under two protocols or compilers never mix."""

    kernel: str
    datatype: str
    cell: str
    stamp: str
    family: str


@dataclass
class RaceMemory:
    """Winners and timings of this judge process; never written to disk (scoring.md 1.4)."""

    winners: dict[tuple[str, str, str], str] = field(default_factory=dict)
    timings: dict[TimingKey, Remembered] = field(default_factory=dict)

    def leader(self, kernel: str, preset: str, datatype: str, kinds: tuple[str, ...]) -> tuple[str, str]:
        """The expected winner and where that is known from: ``cache``, ``table`` or ``default``."""
        remembered = self.winners.get((kernel, preset, datatype))
        if remembered in kinds:
            return remembered, "cache"
        listed = load_leaders().get(kernel, {}).get(preset)
        if listed in kinds:
            return listed, "table"
        return (DEFAULT_LEADER if DEFAULT_LEADER in kinds else kinds[0]), "default"


def load_leaders(path: Path | None = None) -> dict[str, dict[str, str]]:
    """Recorded winners, ``{kernel: {preset: kind}}``; an absent file is an empty table.

    Raises:
        UserError: the file is no such table.
    """
    chosen = path or LEADERS_FILE
    try:
        table = yaml.safe_load(chosen.read_text(encoding="utf-8")) or {}
        return {str(kernel): {str(k): str(v) for k, v in row.items()} for kernel, row in table.items()}
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, AttributeError) as error:
        raise UserError(
            f"{chosen}: not a table of leaders ({error})", "write kernel: {preset: kind}"
        ) from None


def cut_budget_ns(leader_times: list[int], settings: config.Measurement) -> int | None:
    """The longest a losing reference's rep may take: max(floor, factor x the leader's slowest rep)."""
    if settings.baseline_race == "complete" or not leader_times:
        return None
    return int(max(settings.early_stop_floor_s * 1e9, settings.early_stop_factor * max(leader_times)))


def fastest(times: dict[str, list[int]] | dict[str, tuple[int, ...]], kinds: tuple[str, ...]) -> str | None:
    """The kind with the smallest median among those that were timed; None when none was."""
    timed = [k for k in kinds if times.get(k)]
    return min(timed, key=lambda k: statistics.median(times[k])) if timed else None
