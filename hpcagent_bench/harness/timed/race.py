"""The best-of race on one input: leader first, the loser cut, the oracle's answers (scoring.md 1.2, 1.4)."""

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
from hpcagent_bench.harness.phases import Phases
from hpcagent_bench.harness.references import JudgeFault, References
from hpcagent_bench.harness.timed import schedule
from hpcagent_bench.harness.timed.transport import Gap, gap_of

CUT_RETRIES = 1
"""A cut reference is tried again this often before it counts as not the fastest."""


@dataclass(frozen=True)
class RaceResult:
    """The race of one input: times in ns per kind, the winner, and why others are missing.

    ``gaps`` are those of the timed runs just made, ``cold`` is each kind's first call.
    """

    times: dict[str, tuple[int, ...]]
    winner: str
    leader: str
    leader_source: str
    cuts: dict[str, int]
    lost: dict[str, str]
    gaps: dict[str, tuple[Gap, ...]] = field(default_factory=dict)
    cold: dict[str, int] = field(default_factory=dict)

    @property
    def baseline(self) -> tuple[int, ...]:
        """The winner's timed runs, in ns."""
        return self.times[self.winner]


@dataclass
class Race:
    """References on one input. Call it once a draw; it answers with the oracle's outputs.

    ``family`` is the compiler family of the C reference, the candidate's. ``alone`` names the one kind that
    is baseline and oracle when the judge measures itself: nothing is remembered then, and nobody is cut.
    """

    kernel: Kernel
    cell: InputCell
    protocol: protocols.Protocol
    settings: config.Judge
    references: References
    memory: denominators.RaceMemory
    budget_s: float
    family: str = "gcc"
    alone: str = ""
    phases: Phases = field(default_factory=Phases)
    times: dict[str, list[int]] = field(default_factory=dict)
    gaps: dict[str, list[Gap]] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    _children: dict[str, Child] = field(default_factory=dict)
    _waiting: dict[str, list[Child]] = field(default_factory=dict)
    _cold_ns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        datatype = self.settings.service.datatype
        self._winner_key = (self.kernel.name, self.cell.preset, datatype)
        self._memory_key = denominators.TimingKey(
            self.kernel.name, datatype, self.cell.key, self.protocol.stamp, self.family
        )
        if self.alone:
            self.denominator = denominators.Denominator(self.alone, (self.alone,))
            self.remembered = None
        else:
            self.denominator = denominators.for_kernel(self.kernel, self.settings.measurement)
            self.remembered = self.memory.timings.get(self._memory_key)
        self.leader, self.leader_source = self.memory.leader(*self._winner_key, self.denominator.kinds)
        self.running = self._kinds_to_run()

    def _kinds_to_run(self) -> list[str]:
        """Leader first. A kind whose timings are remembered runs only where its answers are needed."""
        oracle, *others = self._oracle_kinds()
        if self.remembered is not None:
            cut = self.remembered.cuts
            return [next((kind for kind in (oracle, *others) if kind not in cut), oracle)]
        kinds = sorted(self.denominator.kinds, key=lambda kind: kind != self.leader)
        return kinds if oracle in kinds else [*kinds, oracle]

    def _oracle_kinds(self) -> list[str]:
        """Who is asked for answers, in order: C then numba; on scientific_computing the leader first."""
        if self.alone:
            return [self.alone]
        first = self.settings.service.oracle
        if first not in denominators.ORACLE_KINDS:
            first = "c"
            if self.kernel.track == "scientific_computing":
                first = self.leader if self.leader in denominators.ORACLE_KINDS else "numba"
        return sorted(denominators.ORACLE_KINDS, key=lambda kind: kind != first)

    def start(self) -> None:
        """Start all processes of every reference that will run; they get ready side by side."""
        for kind in list(self.running):
            try:
                waiting = self._waiting.setdefault(kind, [])
                for _ in range(schedule.processes(self.protocol)):
                    waiting.append(self._new(kind))
            except JudgeFault as fault:
                self._lose(kind, str(fault))

    def await_ready(self) -> None:
        """Wait until every process started stands idle."""
        for waiting in self._waiting.values():
            for child in waiting:
                child.await_ready()

    def next_process(self) -> None:
        """End the current process of every reference; the next calls go to the ones that wait."""
        for kind in self.running:
            self._end(kind)
            if self._waiting.get(kind):
                self._children[kind] = self._waiting[kind].pop(0)

    def call(
        self, draw: Draw, scalars: Mapping[str, int | float], *, timed: bool
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Run every reference still racing on ``draw``; return the oracle's outputs (frozen views).

        Raises:
            JudgeFault: no reference can answer, or one that the denominator cannot do without is lost.
        """
        for kind in list(self.running):
            self._run(kind, draw, scalars, timed)
        for kind in self._oracle_kinds():
            if kind in self.running:
                return self._children[kind].outputs
        return self._substitute(draw, scalars)

    def _substitute(self, draw: Draw, scalars: Mapping[str, int | float]) -> Mapping[str, npt.NDArray[Any]]:
        """Answers of an oracle that has not run so far: the first one asked cannot answer."""
        for kind in self._oracle_kinds():
            if kind not in self.lost and kind not in self.cuts:
                self.running.append(kind)
                self._run(kind, draw, scalars, timed=False)
                if kind in self.running:
                    return self._children[kind].outputs
        raise JudgeFault(f"no reference of {self.kernel.name} can answer: {self.lost or self.cuts}")

    def estimate_ns(self) -> float | None:
        """The baseline so far: the best median of timed runs, else the best warm-up; None before any."""
        known = self.times if self.remembered is None else {**self.remembered.times, **self.times}
        best = denominators.fastest({k: list(v) for k, v in known.items()}, self.denominator.kinds)
        if best is not None:
            return float(np.median(known[best]))
        cold = [ns for kind, ns in self._cold_ns.items() if kind in self.denominator.kinds]
        return float(min(cold)) if cold else None

    def finish(self) -> RaceResult:
        """Decide the winner and remember the timings in this process."""
        known = dict(self.remembered.times) if self.remembered is not None else {}
        known.update({kind: tuple(times) for kind, times in self.times.items() if times})
        cuts = {**(self.remembered.cuts if self.remembered else {}), **self.cuts}
        racing = {kind: times for kind, times in known.items() if kind in self.denominator.kinds}
        winner = denominators.fastest(racing, self.denominator.kinds)
        if winner is None:
            raise JudgeFault(f"no reference of {self.kernel.name} could be timed: {self.lost or cuts}")
        if not self.alone:
            self.memory.timings[self._memory_key] = denominators.Remembered(known, cuts, winner)
            self.memory.winners[self._winner_key] = winner
        return RaceResult(
            racing,
            winner,
            self.leader,
            self.leader_source,
            cuts,
            dict(self.lost),
            {kind: tuple(gaps) for kind, gaps in self.gaps.items()},
            dict(self._cold_ns),
        )

    def close(self) -> None:
        """Give every child back, whatever happened."""
        for kind in [*self._children, *self._waiting]:
            self._end(kind)
            for child in self._waiting.pop(kind, []):
                self.references.discard(child)

    def _new(self, kind: str) -> Child:
        own = self.protocol.sampled == "run"
        return self.references.start(self.kernel, kind, self.family, own=own)

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
                self.gaps.setdefault(kind, []).append(gap_of(outcome))
            else:
                self._cold_ns.setdefault(kind, outcome.inside_ns)
        elif outcome.status == "timeout" and cut is not None:
            self._drop(kind)
            self.cuts[kind] = cut
            self.times.pop(kind, None)
        else:
            self._lose(kind, f"{outcome.status}: {outcome.detail}")

    def _cut_ns(self, kind: str) -> int | None:
        """The loser's budget where it is below the whole one, under which leader and lone oracle run."""
        if kind == self.leader or self.leader not in self.running:
            return None
        cut = denominators.cut_budget_ns(self.times.get(self.leader, []), self.settings.measurement)
        return cut if cut is not None and cut < self.budget_s * 1e9 else None

    def _attempt(
        self, kind: str, draw: Draw, scalars: Mapping[str, int | float], cut_ns: int | None
    ) -> Outcome:
        limit = self.budget_s if cut_ns is None else cut_ns / 1e9
        with self.phases.of("load"):
            if kind not in self._children:
                try:
                    self._children[kind] = self._new(kind)
                except JudgeFault as fault:
                    return Outcome("refused", detail=str(fault))
            outcome = self._children[kind].call(draw, scalars, timeout_s=limit)
        self.phases.move("load", "call", outcome.outside_ns / 1e9)
        return outcome

    def _restart(self, kind: str, draw: Draw, scalars: Mapping[str, int | float]) -> None:
        """A fresh child, warmed by one untimed call under the whole budget, for the one retry of a cut."""
        self._end(kind)
        self._attempt(kind, draw, scalars, None)

    def _end(self, kind: str) -> None:
        child = self._children.pop(kind, None)
        if child is not None:
            self.references.discard(child)

    def _drop(self, kind: str) -> None:
        self._end(kind)
        self.running.remove(kind)

    def _lose(self, kind: str, why: str) -> None:
        """A lost C reference is the judge's fault where it races; any other is disclosed, the rest stand."""
        self._drop(kind)
        self.times.pop(kind, None)
        self.lost[kind] = why
        kinds = self.denominator.kinds
        if kind == "c" and "c" in kinds:
            raise JudgeFault(f"the C reference of {self.kernel.name} is lost ({why})")
        if self.remembered is None and not any(k in self.running for k in kinds):
            raise JudgeFault(f"no reference of {self.kernel.name} is left to time: {self.lost}")
