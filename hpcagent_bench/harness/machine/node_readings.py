"""What a node tells about itself while it is timed: one ``Readings`` a look.

Everything is read, nothing is set: a judge that tuned its machine would measure another one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hpcagent_bench.harness import pinning
from hpcagent_bench.harness.machine import node_loops
from hpcagent_bench.harness.machine.node_loops import CoreTimes

PROC = Path("/proc")
SYSTEM = Path("/sys/devices/system/cpu")
LOOK_S = 0.2
"""How long processes are watched to name the one that uses a core."""


@dataclass(frozen=True)
class Readings:
    """One look at the node. Shares are of the timed cores' time, the worst core's; None is not readable.

    ``chain_ns`` and ``sweep_ns`` are the fastest runs of the reference on the first core (a chain of
    dependent steps; a sweep of memory), ``self_ratio`` its even against its odd runs: the larger of the two
    ratios of medians, at least 1. ``foreign`` is time the cores ran others while the reference was due,
    ``steal`` what the hypervisor kept, ``sibling`` how busy the other hardware threads of the cores were,
    ``running`` runnable tasks per CPU of the host.
    """

    at: float
    chain_ns: float
    sweep_ns: float
    self_ratio: float
    foreign: float
    steal: float
    sibling: float
    running: float
    load: float | None = None
    memory_gb: float | None = None
    governor: str | None = None
    turbo: bool | None = None
    mhz: float | None = None


class Reader(Protocol):
    """Looks at a node; tests hand in looks of their own."""

    def read(self) -> Readings:
        """One look, reference included."""

    def neighbours(self) -> tuple[str, ...]:
        """The processes that use the timed cores most, as one phrase each."""


@dataclass(frozen=True)
class Ticks:
    """Counters of /proc/stat per CPU, in ticks: busy (without steal), stolen, all; and runnable tasks."""

    busy: dict[int, int]
    steal: dict[int, int]
    total: dict[int, int]
    running: int


def ticks(proc: Path = PROC) -> Ticks:
    """Read /proc/stat (proc(5)): user nice system idle iowait irq softirq steal guest guest_nice."""
    busy: dict[int, int] = {}
    steal: dict[int, int] = {}
    total: dict[int, int] = {}
    running = 0
    for line in (proc / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            # guest time is in user time already; old kernels write fewer fields
            user, nice, system, idle, wait, irq, soft, stolen = (
                *map(int, fields[:8]),
                *(0,) * (8 - len(fields)),
            )
            core = int(name[3:])
            busy[core] = user + nice + system + irq + soft
            steal[core] = stolen
            total[core] = busy[core] + stolen + idle + wait
        elif name == "procs_running":
            running = int(fields[0])
    return Ticks(busy, steal, total, running)


def share(
    before: dict[int, int], after: dict[int, int], base: Ticks, now: Ticks, cores: Sequence[int]
) -> float:
    """The largest share of a core's time a counter grew by; one tick is not told from none."""
    largest = 0.0
    for core in cores:
        window = now.total.get(core, 0) - base.total.get(core, 0)
        grown = after.get(core, 0) - before.get(core, 0) - 1
        if window > 0 and grown > 0:
            largest = max(largest, grown / window)
    return min(largest, 1.0)


def self_ratio(times: Sequence[CoreTimes]) -> float:
    """A reference against itself: even against odd runs, the larger side over the smaller, at least 1."""
    worst = 1.0
    for series in (s for core in times for s in (core.chain_ns, core.sweep_ns) if len(s) >= 2):
        one, other = statistics.median(series[0::2]), statistics.median(series[1::2])
        worst = max(worst, one / other, other / one)
    return worst


@dataclass
class Machine:
    """The real node, seen from the timed ``cores``; folders are given for tests."""

    cores: tuple[int, ...]
    proc: Path = PROC
    system: Path = SYSTEM

    @property
    def siblings(self) -> tuple[int, ...]:
        """The other hardware threads of the timed cores' physical cores."""
        every = {thread for core in self.cores for thread in pinning.siblings(core, self.system)}
        return tuple(sorted(every - set(self.cores)))

    def read(self) -> Readings:
        """One look: counters before and after about a tenth of a second of the reference."""
        before = ticks(self.proc)
        times = node_loops.time_cores(self.cores)
        after = ticks(self.proc)
        mine = 1 + len(self.cores)  # this reader and the loops themselves
        cpus = max(len(after.total), 1)
        return Readings(
            at=time.time(),
            chain_ns=float(min(times[0].chain_ns)),
            sweep_ns=float(min(times[0].sweep_ns)),
            self_ratio=self_ratio(times),
            foreign=max(core.lost for core in times),
            steal=share(before.steal, after.steal, before, after, self.cores),
            sibling=share(before.busy, after.busy, before, after, self.siblings),
            running=max(0, min(before.running, after.running) - mine) / cpus,
            load=_load(self.proc),
            memory_gb=_memory_gb(self.proc),
            governor=_governor(self.system, self.cores[0]),
            turbo=_turbo(self.system),
            mhz=_mhz(self.system, self.cores[0]),
        )

    def neighbours(self) -> tuple[str, ...]:
        """The three other processes last seen on the timed cores or their siblings that used most CPU."""
        watched = {*self.cores, *self.siblings}
        before = _cpu_of_processes(self.proc)
        time.sleep(LOOK_S)
        hertz = os.sysconf("SC_CLK_TCK")
        used = []
        for pid, (name, core, spent) in _cpu_of_processes(self.proc).items():
            grown = spent - before.get(pid, (name, core, spent))[2]
            if pid != os.getpid() and core in watched and grown > 0:
                used.append((grown / hertz / LOOK_S, f"{name} ({pid}) on core {core}"))
        return tuple(f"{text} {part:.0%}" for part, text in sorted(used, reverse=True)[:3])


def _cpu_of_processes(proc: Path) -> dict[int, tuple[str, int, int]]:
    """pid -> (name, CPU last run on, user and system ticks), of every process that can be read (proc(5))."""
    found: dict[int, tuple[str, int, int]] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            head, _, tail = (folder / "stat").read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        fields = tail.split()  # from the third field on: the state
        found[int(folder.name)] = (head.partition("(")[2], int(fields[36]), int(fields[11]) + int(fields[12]))
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _load(proc: Path) -> float | None:
    text = _text(proc / "loadavg")
    return float(text.split()[0]) if text else None


def _memory_gb(proc: Path) -> float | None:
    for line in (_text(proc / "meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 2**20
    return None


def _governor(system: Path, core: int) -> str | None:
    return _text(system / f"cpu{core}" / "cpufreq" / "scaling_governor")


def _turbo(system: Path) -> bool | None:
    """Whether the processor may run above its nominal rate; None where no driver tells."""
    off = _text(system / "intel_pstate" / "no_turbo")
    if off is not None:
        return off == "0"
    boost = _text(system / "cpufreq" / "boost")
    return None if boost is None else boost == "1"


def _mhz(system: Path, core: int) -> float | None:
    text = _text(system / f"cpu{core}" / "cpufreq" / "scaling_cur_freq")
    return int(text) / 1000 if text else None
