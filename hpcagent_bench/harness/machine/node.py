"""A node proves itself: before the first credited grade and every hour a reference is timed against itself.

What is out of bounds is waited out for a while (``measurement.node_wait_s``). Then the work is owed with its
reason: a node that is not itself must not become a shifted mean.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench import config
from hpcagent_bench.harness.machine import node_loops
from hpcagent_bench.harness.machine.node_readings import Machine, Reader, Readings
from hpcagent_bench.harness.references import JudgeFault

RETRY_S = 5.0
"""Longest pause between two looks at a node that is out of bounds."""


class NodeNotReady(JudgeFault):
    """The node stayed out of its bounds; the grade is owed. The text starts ``infra: node``."""


@dataclass(frozen=True)
class Excess:
    """One reading beyond its bound.

    ``cause`` is one of steal, foreign, sibling, load, memory, drift and noise.
    """

    cause: str
    what: str
    value: str
    bound: str

    def __str__(self) -> str:
        return f"{self.what} {self.value}, {self.bound}"


def excesses(now: Readings, best: Readings | None, bounds: config.Measurement) -> list[Excess]:
    """What is out of bounds in ``now``; drift is against ``best``, the fastest readings so far."""
    found = []

    def share(cause: str, what: str, value: float, bound: float) -> None:
        if value > bound:
            found.append(Excess(cause, what, f"{value:.1%}", f"at most {bound:.1%}"))

    share("steal", "time of a timed core kept by the hypervisor", now.steal, bounds.node_max_steal)
    share("foreign", "time of a timed core used by others", now.foreign, bounds.node_max_foreign)
    share("sibling", "the other thread of a timed core busy", now.sibling, bounds.node_max_sibling)
    if now.running > bounds.node_max_running:
        bound = f"at most {bounds.node_max_running:g}"
        found.append(Excess("load", "runnable tasks per CPU", f"{now.running:.2f}", bound))
    if now.memory_gb is not None and now.memory_gb < bounds.node_min_memory_gb:
        bound = f"at least {bounds.node_min_memory_gb:g} GB"
        found.append(Excess("memory", "memory available", f"{now.memory_gb:.2f} GB", bound))
    share("noise", "a reference against itself off by", now.self_ratio - 1, bounds.node_max_noise)
    if best is not None:
        clock = now.chain_ns / best.chain_ns - 1
        share("drift", "the clock rate below its best by", clock, bounds.node_max_drift)
        memory = now.sweep_ns / best.sweep_ns - 1
        share("drift", "memory slower than at its best by", memory, bounds.node_max_drift)
    return found


def _best(now: Readings, best: Readings | None) -> Readings:
    """The fastest times of both: a node that got faster is measured against its new self."""
    if best is None:
        return now
    return dataclasses.replace(
        best, chain_ns=min(best.chain_ns, now.chain_ns), sweep_ns=min(best.sweep_ns, now.sweep_ns)
    )


@dataclass(frozen=True)
class LookFile:
    """One line of JSON per look at the node, appended."""

    path: Path

    def __call__(self, readings: Mapping[str, Any]) -> None:
        """Append a look; a full disk must not spoil a grade for want of a line."""
        with contextlib.suppress(OSError), self.path.open("a") as handle:
            handle.write(json.dumps(readings) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """Every whole look; a kill may have cut the last line."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]


@dataclass
class NodeWatch:
    """The judge's watch over its node; one per judge process, used by its grading thread alone.

    Args:
        settings: ``measurement.node_*`` is read from it.
        cores: the timed cores.
        reader: looks at the node; default the real one.
        progress: told while the node is waited for.
        guard: held during a look, so that graders sharing a host are not each other's neighbours.
        keep: told the readings of every look.
    """

    settings: config.Judge
    cores: tuple[int, ...]
    reader: Reader | None = None
    progress: Callable[..., None] = lambda phase, **facts: None
    guard: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    keep: Callable[[Mapping[str, Any]], None] = lambda readings: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    best: Readings | None = None
    last: Readings | None = None
    exceeded: list[Excess] = field(default_factory=list)
    neighbours: tuple[str, ...] = ()
    _checked: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.reader is None:
            self.reader = Machine(self.cores)

    def require(self) -> str:
        """Look at the node when a look is due; returns a note for the grade, empty when all is well.

        Raises:
            NodeNotReady: mode ``wait``, and the node stayed out of bounds for ``node_wait_s``.
        """
        bounds = self.settings.measurement
        if bounds.node_check == "off":
            return ""
        if self._checked is None or self.clock() - self._checked >= bounds.node_check_every_s:
            self._look_until_fine(bounds)
            self._checked = self.clock()
        return self.note

    @property
    def note(self) -> str:
        """What the last look found out of bounds, in one line; empty when nothing.

        It goes onto grades, which agents read: it names no process.
        """
        return f"node {'; '.join(map(str, self.exceeded))}" if self.exceeded else ""

    @property
    def peak_gbps(self) -> float:
        """The most GB/s all timed cores together can read or write in any cache, measured once a process."""
        return node_loops.core_peak_gbps(self.cores[0]) * len(self.cores)

    def look(self) -> list[Excess]:
        """One look at the node now, against the bounds and against its best so far."""
        assert self.reader is not None
        with self.guard():
            now = self.reader.read()
        self.exceeded = excesses(now, self.best, self.settings.measurement)
        causes = {excess.cause for excess in self.exceeded}
        self.neighbours = self.reader.neighbours() if causes & {"foreign", "sibling", "load"} else ()
        self.best, self.last = _best(now, self.best), now
        self.keep(self.readings())
        return self.exceeded

    def readings(self) -> dict[str, Any]:
        """The last look and what was wrong with it, for the record; empty before the first."""
        if self.last is None:
            return {}
        return {
            **dataclasses.asdict(self.last),
            "causes": sorted({excess.cause for excess in self.exceeded}),
            "note": self.note,
            "neighbours": list(self.neighbours),
        }

    def _look_until_fine(self, bounds: config.Measurement) -> None:
        started = self.clock()
        while self.look() and bounds.node_check == "wait":
            waited = self.clock() - started
            if waited >= bounds.node_wait_s:
                raise NodeNotReady(f"infra: {self.note}; waited {waited:.0f} s")
            self.progress("waiting for the node", why=self.note)
            self.sleep(min(RETRY_S, bounds.node_wait_s - waited))
