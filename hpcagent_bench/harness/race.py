"""The best-of race on one input: leader first, the loser cut, the oracle's answers (scoring.md 1.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench import config, protocols
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness.metric import InputCell
from hpcagent_bench.harness.native_call import Child, Draw, Outcome
from hpcagent_bench.harness.references import JudgeFault, References

CUT_RETRIES = 1
"""A cut reference is tried again this often before it counts as not the fastest."""


@dataclass(frozen=True)
class RaceResult:
    """The race of one input: times in ns per kind, the winner, and why others are missing."""

    times: dict[str, tuple[int, ...]]
    winner: str
    leader: str
    leader_source: str
    cuts: dict[str, int]
    lost: dict[str, str]

    @property
    def baseline(self) -> tuple[int, ...]:
        """The winner's timed runs, in ns."""
        return self.times[self.winner]


@dataclass
class Race:
    """References on one input. Call it once a draw; it answers with the oracle's outputs."""

    kernel: Kernel
    cell: InputCell
    protocol: protocols.Protocol
    settings: config.Judge
    references: References
    memory: denominators.RaceMemory
    budget_s: float
    times: dict[str, list[int]] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    _children: dict[str, Child] = field(default_factory=dict)
    _warm_ns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.denominator = denominators.for_kernel(self.kernel, self.settings.measurement)
        datatype = self.settings.service.datatype
        self._winner_key = (self.kernel.name, self.cell.preset, datatype)
        self._memory_key = (self.kernel.name, datatype, self.cell.key, self.protocol.runs)
        self.remembered = self.memory.timings.get(self._memory_key)
        self.leader, self.leader_source = self.memory.leader(*self._winner_key, self.denominator.kinds)
        self.running = self._kinds_to_run()

    def _kinds_to_run(self) -> list[str]:
        """Leader first. A kind whose timings are remembered runs only where its answers are needed."""
        oracle = self._oracle_kinds()[0]
        if self.remembered is not None:
            return [self.remembered.winner if oracle in self.remembered.cuts else oracle]
        kinds = sorted(self.denominator.kinds, key=lambda kind: kind != self.leader)
        return kinds if oracle in kinds else [*kinds, oracle]

    def _oracle_kinds(self) -> list[str]:
        """Who is asked for answers, in order: C then numba; on scientific_computing the leader first."""
        if self.kernel.track == "scientific_computing":
            return sorted(denominators.REFERENCE_KINDS, key=lambda kind: kind != self.leader)
        return ["c", "numba"]

    def start(self) -> None:
        """Start the processes of every reference that will run."""
        for kind in self.running:
            self._children[kind] = self.references.start(self.kernel, kind)

    def call(
        self, draw: Draw, scalars: Mapping[str, int | float], *, timed: bool
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Run every reference still racing on ``draw``; return the oracle's outputs (frozen views).

        Raises:
            JudgeFault: no reference can answer, or the C reference is lost.
        """
        for kind in list(self.running):
            self._run(kind, draw, scalars, timed)
        for kind in self._oracle_kinds():
            if kind in self.running:
                return self._children[kind].outputs
        raise JudgeFault(f"no reference of {self.kernel.name} can answer: {self.lost or self.cuts}")

    def estimate_ns(self) -> float | None:
        """The baseline so far: the best median of timed runs, else the best warm-up; None before any."""
        known = self.times if self.remembered is None else {**self.remembered.times, **self.times}
        best = denominators.fastest({k: list(v) for k, v in known.items()}, self.denominator.kinds)
        if best is not None:
            return float(np.median(known[best]))
        warm = [ns for kind, ns in self._warm_ns.items() if kind in self.denominator.kinds]
        return float(min(warm)) if warm else None

    def finish(self) -> RaceResult:
        """Decide the winner, remember the timings in this process, and end the children."""
        known = dict(self.remembered.times) if self.remembered is not None else {}
        known.update({kind: tuple(times) for kind, times in self.times.items() if times})
        cuts = {**(self.remembered.cuts if self.remembered else {}), **self.cuts}
        racing = {kind: times for kind, times in known.items() if kind in self.denominator.kinds}
        winner = denominators.fastest(racing, self.denominator.kinds)
        if winner is None:
            raise JudgeFault(f"no reference of {self.kernel.name} could be timed: {self.lost or cuts}")
        self.memory.timings[self._memory_key] = denominators.Remembered(known, cuts, winner)
        self.memory.winners[self._winner_key] = winner
        return RaceResult(racing, winner, self.leader, self.leader_source, cuts, dict(self.lost))

    def close(self) -> None:
        """Give every child back, whatever happened."""
        for kind, child in self._children.items():
            self.references.discard(kind, child)
        self._children.clear()

    def _run(self, kind: str, draw: Draw, scalars: Mapping[str, int | float], timed: bool) -> None:
        cut = self._cut_ns(kind) if timed else None
        outcome = self._attempt(kind, draw, scalars, cut)
        for _ in range(CUT_RETRIES):
            if outcome.status != "timeout" or cut is None:
                break
            self._restart(kind, draw, scalars)
            outcome = self._attempt(kind, draw, scalars, cut)
        if outcome.status == "ok":
            if timed:
                self.times.setdefault(kind, []).append(outcome.inside_ns)
            else:
                self._warm_ns.setdefault(kind, outcome.inside_ns)
        elif outcome.status == "timeout" and cut is not None:
            self._drop(kind)
            self.cuts[kind] = cut
            self.times.pop(kind, None)
        else:
            self._lose(kind, outcome)

    def _cut_ns(self, kind: str) -> int | None:
        """The loser's budget; the leader, and a lone oracle, run under the whole one."""
        if kind == self.leader or self.leader not in self.running:
            return None
        return denominators.cut_budget_ns(self.times.get(self.leader, []), self.settings.measurement)

    def _attempt(
        self, kind: str, draw: Draw, scalars: Mapping[str, int | float], cut_ns: int | None
    ) -> Outcome:
        if kind not in self._children:
            self._children[kind] = self.references.start(self.kernel, kind)
        limit = self.budget_s if cut_ns is None else min(self.budget_s, cut_ns / 1e9)
        return self._children[kind].call(draw, scalars, timeout_s=limit)

    def _restart(self, kind: str, draw: Draw, scalars: Mapping[str, int | float]) -> None:
        """A fresh child, warmed by one untimed call, for the one retry of a cut."""
        self._drop(kind, keep_running=True)
        self._attempt(kind, draw, scalars, None)

    def _drop(self, kind: str, *, keep_running: bool = False) -> None:
        child = self._children.pop(kind, None)
        if child is not None:
            self.references.discard(kind, child)
        if not keep_running:
            self.running.remove(kind)

    def _lose(self, kind: str, outcome: Outcome) -> None:
        """A lost C reference is the judge's fault; a lost numba is disclosed and C stands alone."""
        self._drop(kind)
        self.times.pop(kind, None)
        self.lost[kind] = f"{outcome.status}: {outcome.detail}"
        if kind == "c":
            raise JudgeFault(f"the C reference of {self.kernel.name} is lost ({self.lost[kind]})")
