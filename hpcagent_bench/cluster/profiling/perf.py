"""Samples and counters of the Linux kernel's perf."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.cluster import wire
from hpcagent_bench.cluster.profiling.launching import INSIDE

FREQUENCY = 997
"""Samples a second: a prime, so that no periodic kernel is always caught at the same place."""
TOP = 20
"""How many hot spots are told."""
MOST_PARANOID = 2
"""Above this, /proc/sys/kernel/perf_event_paranoid forbids users to look at their own processes."""
REPORT_TIMEOUT_S = 60
SETTING = Path("/proc/sys/kernel/perf_event_paranoid")
GROUPS: dict[str, tuple[str, ...]] = {
    "overview": (
        "task-clock",
        "context-switches",
        "page-faults",
        "cycles",
        "instructions",
        "branches",
        "branch-misses",
        "cache-misses",
    ),
    "cache": (
        "L1-dcache-loads",
        "L1-dcache-load-misses",
        "cache-references",
        "cache-misses",
        "LLC-loads",
        "LLC-load-misses",
    ),
    "memory": ("LLC-load-misses", "LLC-store-misses", "page-faults", "minor-faults", "major-faults"),
    "branch": ("branches", "branch-misses"),
    "tlb": ("dTLB-loads", "dTLB-load-misses", "dTLB-stores", "dTLB-store-misses", "iTLB-load-misses"),
    "flops": (
        "fp_arith_inst_retired.scalar_double",
        "fp_arith_inst_retired.128b_packed_double",
        "fp_arith_inst_retired.256b_packed_double",
        "fp_arith_inst_retired.512b_packed_double",
        "fp_ret_sse_avx_ops.all",
    ),
    "stalls": ("stalled-cycles-frontend", "stalled-cycles-backend", "cycles"),
}
_COUNT = re.compile(r"([0-9.]+)")


@dataclass(frozen=True)
class Missing:
    """Why a profiler cannot be used: the cause as a word, and for people."""

    cause: str
    words: str


def missing() -> Missing | None:
    """Why perf cannot be used on this host, or None."""
    if not sys.platform.startswith("linux"):
        return Missing("not_linux", "it is no Linux")
    if shutil.which("perf") is None:
        return Missing("perf_missing", "perf is not installed")
    if not SETTING.exists():
        return Missing("no_perf_events", "its kernel has no performance events")
    try:
        level = int(SETTING.read_text())
    except (OSError, ValueError):
        level = 0
    if level > MOST_PARANOID:
        return Missing("perf_event_paranoid", f"kernel.perf_event_paranoid is {level}, at most 2 is needed")
    return None


def recording(data: Path) -> list[str]:
    """What starts a command so that it is sampled into ``data``."""
    return ["perf", "record", "-q", "-F", str(FREQUENCY), "-o", str(data), "--"]


def counting(out: Path, events: tuple[str, ...]) -> list[str]:
    """What starts a command so that its events are counted into ``out``."""
    return ["perf", "stat", "-x", ",", "-o", str(out), "-e", ",".join(events or ("task-clock",)), "--"]


def events_of(group: str) -> tuple[str, ...]:
    """The events of a group; ``all`` is every one."""
    if group != "all":
        return GROUPS[group]
    return tuple(dict.fromkeys(event for events in GROUPS.values() for event in events))


@functools.cache
def known_events(group: str) -> tuple[str, ...]:
    """Those events of a group that perf knows by name on this host."""
    return tuple(event for event in events_of(group) if _knows(event))


@functools.cache
def _knows(event: str) -> bool:
    tried = subprocess.run(
        ["perf", "stat", "-e", event, "true"], capture_output=True, timeout=REPORT_TIMEOUT_S, check=False
    )
    return tried.returncode == 0


def counted(out: Path, group: str) -> list[wire.Counter]:
    """The counters of a run; without a value where the host does not count them."""
    found: dict[str, float] = {}
    try:
        lines = out.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        fields = line.split(",")
        if len(fields) > 2 and _COUNT.fullmatch(fields[0]):
            found[fields[2].removesuffix(":u")] = float(fields[0])
    return [wire.Counter(event=event, value=found.get(event)) for event in events_of(group)]


def hot_spots(data: Path, files: Mapping[str, Path], sealed: bool) -> list[wire.HotSpot]:
    """Shares of the samples by function and line, the driver's own left out; the largest first."""
    with tempfile.TemporaryDirectory(prefix="hpcagent-symbols-", dir=data.parent) as folder:
        if sealed:
            _lay_out(Path(folder), files)
        said = _report(data, Path(folder) if sealed else None)
    spots = [spot for line in said.splitlines() if (spot := _spot(line, sealed)) is not None]
    total = sum(spot.percent for spot in spots)
    shares = [spot.model_copy(update={"percent": round(100 * spot.percent / total, 2)}) for spot in spots]
    return sorted(shares, key=lambda spot: -spot.percent)[:TOP]


def _lay_out(root: Path, files: Mapping[str, Path]) -> None:
    """Show perf the files where the sealed process saw them."""
    inside = root / INSIDE.relative_to("/")
    inside.mkdir()
    for name, path in files.items():
        (inside / name).symlink_to(path.resolve())
    for name in ("usr", "lib", "lib64"):
        if Path("/", name).exists():
            (root / name).symlink_to(Path("/", name).resolve())


def _report(data: Path, root: Path | None) -> str:
    argv = ["perf", "report", "-i", str(data), "--stdio", "-q", "--no-children", "-t", "|"]
    argv += ["-s", "dso,sym,srcline", "--no-inline", *(["--symfs", str(root)] if root else [])]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=REPORT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _spot(line: str, sealed: bool) -> wire.HotSpot | None:
    """One line ``percent|object|symbol|file:line`` of perf's report; None for others and the driver's."""
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != 4 or not fields[0].endswith("%"):
        return None
    share, name, symbol, place = fields
    base = Path(name).name
    if base in ("driver", "bwrap", "runner", "perf", "env") or base.startswith("ld-"):
        return None
    symbol = re.sub(r"^\[[.kguH]\] ", "", symbol)
    known = ":" in place and "??" not in place and not place.startswith(base)
    return wire.HotSpot(
        percent=float(share[:-1]),
        symbol=symbol,
        object=base,
        line=Path(place).name if known else None,
    )
