"""One input of a grade: draws handed to both sides in turn, every call compared (scoring.md 1.2, 1.3)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from hpcagent_bench import protocols
from hpcagent_bench.corpus import fuzz, precision
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import rep_variation, timing
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.memory import Start
from hpcagent_bench.harness.metric import InputCell
from hpcagent_bench.harness.native_call import Child, Draw, Outcome, layout_for
from hpcagent_bench.harness.race import Race, RaceResult
from hpcagent_bench.harness.references import JudgeFault

JUDGE_SIDE = ("seal:", "memory:")
"""How an outcome starts that says the judge's own sealing or memory failed, not the submission."""


GPU_RUNTIMES = ("libcuda.so", "libcudart", "libnvidia-", "libamdhip64", "libhsa-runtime", "libze_loader")
"""How the files of GPU runtimes are called (scoring.md 3.2)."""


@dataclass(frozen=True)
class InputSeeds:
    """Value seeds of one input: calls in order (warm-up first), the base draw, the structural arrays."""

    calls: tuple[int, ...]
    canonical: int


@dataclass
class CandidateRuns:
    """What the candidate did on one input so far. Times in ns; ``failed`` names the first failing run."""

    inside: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    failed: str = ""
    timed_out: bool = False
    stopped_at_ns: float | None = None
    max_rel_error: float = 0.0
    device_runtime: str = ""


@dataclass(frozen=True)
class InputResult:
    """One measured input. ``reduction`` is None unless every run was correct."""

    cell: InputCell
    runs: CandidateRuns
    race: RaceResult | None
    reduction: timing.Reduction | None
    bytes_moved: int

    @property
    def correct(self) -> bool:
        """Whether every call of the input, the canonical one included, agreed with the oracle."""
        return not self.runs.failed


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


def gpu_runtime(files: Iterable[str]) -> str:
    """The GPU runtime among mapped files, or an empty string; a host grade must not use one."""
    return next((name for name in sorted(files) if name.startswith(GPU_RUNTIMES)), "")


class InputMeasurement:
    """Runs one input: warm-up, timed runs, canonical call; both sides on the same draws, taking turns."""

    def __init__(
        self,
        context: GradingContext,
        kernel: Kernel,
        cell: InputCell,
        protocol: protocols.Protocol,
        start_candidate: Callable[[], Child] | None,
        workspace_bytes: int = 0,
    ) -> None:
        self.context = context
        self.kernel = kernel
        self.cell = cell
        self.protocol = protocol
        self.start_candidate = start_candidate
        self.workspace_bytes = max(workspace_bytes, kernel.workspace_floor(cell.params))
        datatype = context.settings.service.datatype
        self.scalars = kernel.scalars(cell.params)
        layout = layout_for(context.binding(kernel), kernel.shapes(cell.params), kernel.dtypes(datatype))
        self.inputs = layout.part(name for name in layout.names if name not in kernel.outputs)
        self.outputs = layout.part(kernel.outputs)
        self.tolerances = context.tolerances(kernel, cell.params)
        self.race = Race(
            kernel,
            cell,
            protocol,
            context.settings,
            context.references,
            context.memory,
            context.budget_s(kernel),
        )
        self.runs = CandidateRuns()
        self._child: Child | None = None

    def run(self, seeds: InputSeeds) -> InputResult:
        """Measure the input; a candidate's failure ends it early, a judge's raises JudgeFault."""
        try:
            self._start()
            with self.context.timing():
                for index, seed in enumerate([*seeds.calls, seeds.canonical]):
                    self._one_draw(index, seed, seeds.canonical)
                    if self.runs.failed:
                        return self._result(None)
            self.runs.device_runtime = gpu_runtime(self._child.mapped_files() if self._child else ())
            return self._result(self.race.finish())
        finally:
            self.race.close()
            if self._child is not None:
                self._child.close()

    def _start(self) -> None:
        """Start both sides' processes; they get ready while the first inputs are drawn."""
        self.race.start()
        if self.start_candidate is not None:
            self._child = self.start_candidate()

    def _one_draw(self, index: int, seed: int, structural_seed: int) -> None:
        """Both sides on one draw. Odd calls run the candidate first, so that neither slot favours a side."""
        timed = protocols.WARMUP <= index < self.protocol.calls
        datatype = self.context.settings.service.datatype

        def fill(arrays: dict[str, npt.NDArray[Any]]) -> None:
            fuzz.fill(
                self.kernel,
                arrays,
                self.cell.params,
                value_seed=seed,
                structural_seed=structural_seed,
                threads=self.context.threads,
                datatype=datatype,
            )

        # outputs are drawn straight into each side's own buffers: cheaper than copying them from the draw
        draw = Draw.allocate(self.inputs, self.context.pool, Start(self.outputs, fill))
        try:
            fill(draw.arrays)
            draw.seal()
            outcome = self._candidate(draw, index) if index % 2 else None
            answers = self.race.call(draw, self.scalars, timed=timed)
            if outcome is None:
                outcome = self._candidate(draw, index)
            if outcome is not None:
                self._grade_run(outcome, answers, index)
        finally:
            draw.close()

    def _candidate(self, draw: Draw, index: int) -> Outcome | None:
        """One candidate call; None without a candidate, or once it has been stopped."""
        if self._child is None or self.runs.stopped_at_ns is not None:
            return None
        limit = self.context.budget_s(self.kernel)
        cap = self._cap_ns() if index >= protocols.WARMUP else None
        if cap is not None:
            limit = min(limit, cap / 1e9)
        outcome = self._child.call(draw, self.scalars, timeout_s=limit, workspace_bytes=self.workspace_bytes)
        if outcome.status == "timeout" and cap is not None and limit == cap / 1e9:
            self.runs.stopped_at_ns = cap
            return None
        return outcome

    def _cap_ns(self) -> float | None:
        """The guillotine (scoring.md 1.3). It spares the warm-up: the complete run it grades on."""
        known = self.race.estimate_ns()
        limits = self.context.settings.timeouts
        if known is None:
            return None
        return timing.guillotine_ns(known, limits.guillotine_factor, limits.guillotine_floor_s)

    def _grade_run(self, outcome: Outcome, answers: Mapping[str, npt.NDArray[Any]], index: int) -> None:
        """Compare one call's outputs with the oracle's for the same draw; note times of timed runs."""
        name = self._run_name(index)
        if outcome.status == "refused" and outcome.detail.startswith(JUDGE_SIDE):
            raise JudgeFault(outcome.detail)
        if outcome.status != "ok":
            self.runs.failed = f"{name} {outcome.status}: {outcome.detail}"
            self.runs.timed_out = outcome.status == "timeout"
            return
        assert self._child is not None
        for output, tolerance in self.tolerances.items():
            found = precision.compare(
                self._child.outputs[output],
                answers[output],
                tolerance,
                threads=self.context.threads,
                name=output,
            )
            self.runs.max_rel_error = max(self.runs.max_rel_error, found.max_rel_error)
            if not found.ok:
                self.runs.failed = f"{name} {found.detail}"
                return
        if protocols.WARMUP <= index < self.protocol.calls:
            self.runs.inside.append(outcome.inside_ns)
            self.runs.outside.append(outcome.outside_ns)
            self.runs.cpu.append(outcome.cpu_ns)

    def _run_name(self, index: int) -> str:
        if index < protocols.WARMUP:
            return "rep-verify[warm-up]"
        if index >= self.protocol.calls:
            return "rep-verify[canonical]"
        return f"rep-verify[run {index - protocols.WARMUP + 1}]"

    def _result(self, race: RaceResult | None) -> InputResult:
        reduction = None
        if race is not None and self.start_candidate is not None:
            if self.runs.stopped_at_ns is not None:
                baseline = float(statistics.median(race.baseline))
                reduction = timing.reduce_stopped(baseline, self.runs.stopped_at_ns)
            else:
                reduction = timing.reduce_mannwhitney_delta(
                    self.runs.inside, race.baseline, self.protocol.alpha
                )
        moved = self.kernel.input_bytes(self.cell.params, self.context.settings.service.datatype)
        return InputResult(self.cell, self.runs, race, reduction, moved)
