"""One input of a grade: draws handed to both sides in turn, every call compared (scoring.md 1.2, 1.3)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from hpcagent_bench import protocols
from hpcagent_bench.corpus import bands, fuzz, precision
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import rep_variation, timing
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.memory import Outputs, Start
from hpcagent_bench.harness.metric import InputCell
from hpcagent_bench.harness.native_call import Child, Draw, Outcome
from hpcagent_bench.harness.timed import schedule
from hpcagent_bench.harness.timed.candidate_side import CandidateRuns, CandidateSide
from hpcagent_bench.harness.timed.race import Race, RaceResult
from hpcagent_bench.harness.timed.schedule import InputSeeds, Turn
from hpcagent_bench.harness.timed.transport import NO_GAP, Gap, Runner

__all__ = ["CandidateRuns", "InputMeasurement", "InputResult", "InputSeeds", "input_seeds"]


@dataclass(frozen=True)
class InputResult:
    """One measured input. ``reduction`` is None unless every run was correct.

    ``bytes_moved`` are those of all declared arrays, ``bytes_changed`` those of output elements that the
    reference really changed on the canonical draw (None: not counted). ``slack`` are a call's widest honest
    gaps, ``phases`` seconds of wall time.
    """

    cell: InputCell
    runs: CandidateRuns
    race: RaceResult | None
    reduction: timing.Reduction | None
    bytes_moved: int
    bytes_changed: int | None = None
    slack: Gap = NO_GAP
    phases: Mapping[str, float] = field(default_factory=dict)

    @property
    def correct(self) -> bool:
        """Whether every call of the input, the canonical one included, agreed with the oracle."""
        return not self.runs.failed

    @property
    def cold_ratio(self) -> float | None:
        """First calls of processes against each other: the winner's over the candidate's median one."""
        theirs = self.race.cold.get(self.race.winner) if self.race is not None else None
        mine = statistics.median(self.runs.cold) if self.runs.cold else 0
        return theirs / mine if theirs and mine > 0 else None


def input_seeds(
    context: GradingContext, kernel: Kernel, cell: InputCell, seed: int, protocol: protocols.Protocol
) -> InputSeeds:
    """The draws of one input under a route's (salted) seed, starting at a fresh offset of the pool."""
    where = (seed, kernel.name, cell.preset, context.settings.service.datatype, cell.key)
    pool = rep_variation.pool_seeds(*where)
    offset = rep_variation.fresh_nonce() % rep_variation.POOL_SIZE
    return InputSeeds(
        rep_variation.timed_seeds(pool, protocol.calls, offset), rep_variation.canonical_seed(*where)
    )


class InputMeasurement:
    """Runs one input: warm-ups, timed runs, canonical call; both sides on the same draws, taking turns.

    Args:
        start_candidate: makes a process of the candidate; None times the references alone.
        workspace_bytes: scratch memory the submission asks for; it gets the manifest's at least.
        family: compiler family of the C reference.
        runner: which runner calls the candidate.
        against: the reference kind that is baseline and oracle alone, when the judge measures itself.
    """

    def __init__(
        self,
        context: GradingContext,
        kernel: Kernel,
        cell: InputCell,
        protocol: protocols.Protocol,
        start_candidate: Callable[[], Child] | None,
        workspace_bytes: int = 0,
        *,
        family: str = "gcc",
        runner: Runner = "native",
        against: str = "",
    ) -> None:
        self.context = context
        self.kernel = kernel
        self.cell = cell
        self.protocol = protocol
        self.runner: Runner = runner
        self.scalars = kernel.scalars(cell.params)
        self.inputs, self.outputs = context.layouts(kernel, cell.params)
        self.tolerances = context.tolerances(kernel, cell.params)
        budget = context.budget_s(kernel)
        self.race = Race(
            kernel,
            cell,
            protocol,
            context.settings,
            context.references,
            context.memory,
            budget,
            family,
            against,
            context.phases,
        )
        workspace = max(workspace_bytes, kernel.workspace_floor(cell.params))
        self.candidate = (
            CandidateSide(start_candidate, context.cores, budget, workspace, context.phases)
            if start_candidate is not None
            else None
        )
        self.runs = self.candidate.runs if self.candidate is not None else CandidateRuns()
        self._kept: dict[int, Draw] = {}
        self._changed: int | None = None

    def run(self, seeds: InputSeeds) -> InputResult:
        """Measure the input; a candidate's failure ends it early, a judge's raises JudgeFault."""
        before = dict(self.context.phases.seconds)
        try:
            self._start()
            race = self._take_turns(seeds)
        finally:
            self.race.close()
            if self.candidate is not None:
                self.candidate.close()
            for draw in self._kept.values():
                draw.close()
        return self._result(race, self.context.phases.since(before))

    def _start(self) -> None:
        """Start both sides' processes.

        Several a side must stand ready before anything is timed; one gets ready while the first input is
        drawn, and answers its warm-up before that.
        """
        count = schedule.processes(self.protocol)
        with self.context.phases.of("start"):
            self.race.start()
            if self.candidate is not None:
                self.candidate.start(count)
            if count > 1:
                self.race.await_ready()
                if self.candidate is not None:
                    self.candidate.await_ready()

    def _take_turns(self, seeds: InputSeeds) -> RaceResult | None:
        """Every call of the input; None when the candidate failed one."""
        order = schedule.drawn_order(self.protocol.runs)
        turns = schedule.turns(self.protocol, seeds, order)
        with self.context.timing():
            for number, turn in enumerate(turns):
                if turn.opens:
                    self.race.next_process()
                    if self.candidate is not None:
                        self.candidate.next_process()
                again = any(later.seed == turn.seed for later in turns[number + 1 :])
                self._one_draw(turn, seeds.canonical, keep=again)
                if self.runs.failed:
                    return None
        if self.candidate is not None:
            self.candidate.retire()
        return self.race.finish()

    def _one_draw(self, turn: Turn, structural_seed: int, *, keep: bool) -> None:
        """Both sides on one draw, in the turn's order. A draw that comes again is kept until then."""

        def fill(arrays: dict[str, npt.NDArray[Any]]) -> None:
            self._fill(arrays, turn.seed, structural_seed)

        draw = self._kept.get(turn.seed)
        if draw is None:
            # outputs are drawn straight into each side's own buffers: cheaper than copying them from the draw
            draw = Draw.allocate(self.inputs, self.context.pool, Start(self.outputs, fill))
            self._kept[turn.seed] = draw
            fill(draw.arrays)
            draw.seal()
        outcome = self._candidate(draw, turn) if turn.candidate_first else None
        answers = self.race.call(draw, self.scalars, timed=turn.timed)
        if outcome is None:
            outcome = self._candidate(draw, turn)
        if outcome is not None and self.candidate is not None:
            self.candidate.grade(outcome, answers, turn, self.tolerances, self.context.threads)
            if turn.seed == structural_seed and not self.runs.failed:
                self._count_changes(draw, answers)
        if not keep:
            del self._kept[turn.seed]
            draw.close()

    def _fill(self, arrays: dict[str, npt.NDArray[Any]], seed: int, structural_seed: int) -> None:
        with self.context.phases.of("draw"):
            fuzz.fill(
                self.kernel,
                arrays,
                self.cell.params,
                value_seed=seed,
                structural_seed=structural_seed,
                threads=self.context.threads,
                datatype=self.context.settings.service.datatype,
            )

    def _candidate(self, draw: Draw, turn: Turn) -> Outcome | None:
        """One candidate call; None without a candidate, or once it has been stopped."""
        if self.candidate is None:
            return None
        return self.candidate.call(draw, self.scalars, turn, self._cap_ns())

    def _cap_ns(self) -> float | None:
        """How long a candidate run may take at most (scoring.md 1.3); None before any baseline is known."""
        known = self.race.estimate_ns()
        limits = self.context.settings.timeouts
        if known is None:
            return None
        return timing.guillotine_ns(known, limits.guillotine_factor, limits.guillotine_floor_s)

    def _count_changes(self, draw: Draw, answers: Mapping[str, npt.NDArray[Any]]) -> None:
        """Bytes of output elements whose value the reference changed on this draw: the least anyone writes.

        Counted once for a shape: what is written hardly depends on values. The candidate is done, so its
        buffers serve for the first values.
        """
        known = self.context.changed_bytes
        key = (self.kernel.name, self.context.settings.service.datatype, self.cell.key)
        if key not in known:
            assert self.candidate is not None
            self.candidate.retire()
            with self.context.phases.of("compare"):
                begun = Outputs(self.outputs, self.context.pool)
                try:
                    begun.begin(draw.start(self.kernel.outputs))
                    known[key] = sum(
                        self._unlike(answers[name], begun.arrays[name], name) for name in self.kernel.outputs
                    )
                finally:
                    begun.close()
        self._changed = known[key]

    def _unlike(self, changed: npt.NDArray[Any], before: npt.NDArray[Any], name: str) -> int:
        found = precision.compare(changed, before, bands.EXACT, threads=self.context.threads, name=name)
        return found.bad * changed.itemsize

    def _result(self, race: RaceResult | None, phases: Mapping[str, float]) -> InputResult:
        reduction, slack = None, NO_GAP
        if race is not None:
            margin = self.context.settings.record.clock_margin_us * 1e3
            slack = self.context.transport.slack(self.runner, race.gaps, margin)
            self.context.transport.note(race.gaps)
        if race is not None and self.candidate is not None:
            if self.runs.stopped_at_ns is not None:
                baseline = float(statistics.median(race.baseline))
                reduction = timing.reduce_stopped(baseline, self.runs.stopped_at_ns)
            else:
                reduction = timing.reduce_mannwhitney_delta(
                    self.runs.inside, race.baseline, self.protocol.alpha
                )
        moved = self.kernel.input_bytes(self.cell.params, self.context.settings.service.datatype)
        return InputResult(self.cell, self.runs, race, reduction, moved, self._changed, slack, phases)
