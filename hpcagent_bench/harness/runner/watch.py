"""CPU time of a child as the judge sees it: nothing outside the call, no more than its cores within it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hpcagent_bench.harness.child_process import ChildProcess
from hpcagent_bench.harness.runner import proc

IDLE_CPU_NS = 1_000_000
IDLE_CPU_NS_PER_THREAD = 100_000
"""CPU time a child may use outside the clock: receiving a frame, mapping memory, threads falling asleep."""
MAP_CPU_NS_PER_BYTE = 0.3
"""The same for each byte of memory it has not mapped before: a fault and a cleared page, at the slowest."""
LATE_CPU_NS = 3_000_000
LATE_CPU_NS_PER_THREAD = 100_000
"""CPU time between an answer and standing still, some 0.1 ms later: sending, and threads falling asleep.

An honest child uses hundredths of a millisecond; but what an interrupt or a hypervisor takes in that moment
is counted as its own. Work that is regularly done late is less than this, and told by ``late_cpu_ns``."""
STANDING_CPU_NS = 200_000
"""CPU time a stopped child may seem to use: the kernel's counters may lag behind."""
CORES_SLACK = 0.02
CORES_SLACK_NS = 200_000
"""How far CPU time may seem to exceed cores × wall: two clocks that run apart."""
HELPER_CPU_NS = 5_000
"""CPU time that being stopped, or woken, costs each thread but the first: not counted as computing."""
COUNTER_LAG_S = 0.01
COUNTED = ("protocol: computed", "cores: ")
"""How refusals begin that rest on counted CPU time: an interrupted machine can bring one about."""


class Refused(Exception):
    """The child broke the protocol; ``overrun`` names an array past whose end it wrote."""

    def __init__(self, reason: str, overrun: str = "") -> None:
        super().__init__(reason)
        self.overrun = overrun


@dataclass(frozen=True)
class Used:
    """What one call used: ``cpu_ns`` from GO until the child stood, ``late_cpu_ns`` of it after the answer.

    ``load_cpu_ns`` is what it used from being woken until GO, 0 for the draw with which its code is loaded.
    """

    cpu_ns: int
    late_cpu_ns: int
    load_cpu_ns: int
    wall_ns: int
    cores: int
    threads: int

    def check(self) -> None:
        """Raise Refused when it computed after its answer, or on more cores than it was granted."""
        if self.late_cpu_ns > LATE_CPU_NS + LATE_CPU_NS_PER_THREAD * self.threads:
            raise Refused("protocol: computed after it returned")
        granted = self.cores * self.wall_ns
        if self.cpu_ns > granted * (1 + CORES_SLACK) + CORES_SLACK_NS:
            cpu, wall = self.cpu_ns / 1e6, self.wall_ns / 1e6
            raise Refused(f"cores: used {cpu:.1f} ms of CPU time in {wall:.1f} ms on {self.cores} cores")


class Watch:
    """Reads the child's CPU clock at the turns of its protocol."""

    def __init__(self, process: ChildProcess, cores: int) -> None:
        self._process = process
        self._cores = cores
        self._start_ns = 0
        self._start_cpu = 0
        self._answer_cpu = 0
        self._stood_cpu = 0
        self._loading = (0, 0)
        self._loaded = False

    def before_load(self, enforce: bool) -> None:
        """A draw is about to be handed over; the child stands since its last call."""
        self._loading = self._used()
        self._loaded = True
        if enforce and self._loading[1] - self._stood_cpu > STANDING_CPU_NS:
            raise Refused("protocol: computed between calls")

    def after_load(self, new_bytes: int | None) -> None:
        """The draw is handed over, with ``new_bytes`` of memory; None enforces nothing."""
        if new_bytes is not None and self._worked(new_bytes):
            time.sleep(COUNTER_LAG_S)  # the kernel's counters may lag a tick behind
            if self._worked(new_bytes):
                raise Refused("protocol: computed outside the clocked call")

    def _used(self) -> tuple[int, int]:
        """CPU time so far of the helper threads and of all."""
        pid = self._process.pid
        return proc.background_cpu_ns(pid), proc.cpu_ns(pid)

    def _worked(self, new_bytes: int) -> bool:
        """Whether helper threads, or all threads, used more than they may since the load began."""
        idle = IDLE_CPU_NS + IDLE_CPU_NS_PER_THREAD * proc.threads(self._process.pid)
        allowed = (idle, idle + int(new_bytes * MAP_CPU_NS_PER_BYTE))
        return any(n - b > a for n, b, a in zip(self._used(), self._loading, allowed, strict=True))

    def before_call(self) -> None:
        """GO is about to be sent. The wall clock is read first and last, so that it spans the CPU clock."""
        self._start_ns = time.perf_counter_ns()
        self._start_cpu = proc.cpu_ns(self._process.pid)

    def at_answer(self) -> None:
        """The answer is there."""
        self._answer_cpu = proc.cpu_ns(self._process.pid)

    def standing(self) -> Used:
        """Every thread stands."""
        self._stood_cpu = proc.cpu_ns(self._process.pid)
        wall = time.perf_counter_ns() - self._start_ns
        threads = proc.threads(self._process.pid)
        for_helpers = HELPER_CPU_NS * (threads - 1)
        loading = self._start_cpu - self._loading[1] if self._loaded else 0
        return Used(
            cpu_ns=max(0, self._stood_cpu - self._start_cpu),
            late_cpu_ns=max(0, self._stood_cpu - self._answer_cpu - for_helpers),
            load_cpu_ns=max(0, loading - for_helpers),
            wall_ns=wall,
            cores=self._cores,
            threads=threads,
        )
