"""Calls nobody clocks: drawn once for both sides, answered by one oracle, compared (scoring.md 1.2).

The oracle answers while the candidate runs, since nothing is timed; the draw is shared, and its memory comes
from the context's pool. Processes are started together, so that they get ready while inputs are drawn.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus import fuzz, precision, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import denominator as denominators
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.memory import Draw, Start
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.submission import Grading
from hpcagent_bench.support.distributions import Variant

SIDE_BY_SIDE_BYTES = 64 << 20
"""Inputs from this size on go to one side after the other: both at work at once hold too much memory."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """One untimed input. ``label`` names it in reasons: it tells no seed and no value."""

    label: str
    params: dict[str, int | float]
    value_seed: int
    structural_seed: int
    variant: Variant | None = None


@dataclass(frozen=True)
class Failure:
    """Why a call does not pass, in words an agent may read."""

    status: Literal["wrong", "crash", "timeout", "refused"]
    detail: str


@dataclass(frozen=True)
class Drawn:
    """A case with its inputs in place, what a call on it needs, and the oracle's answers to come."""

    case: Case
    draw: Draw
    scalars: dict[str, int | float]
    tolerances: dict[str, precision.Tolerance]
    workspace_bytes: int
    expected: list[Future[Arrays]] = field(default_factory=list)


def sizes_at(context: GradingContext, kernel: Kernel, preset: str) -> tuple[str, dict[str, int]]:
    """(name, sizes) of a preset, or of the timed rung where the preset is larger or not declared."""
    datatype = context.settings.service.datatype
    rung = sizing.rung(kernel, context.sizes, datatype)
    declared = kernel.presets.get(preset)
    if declared is None or kernel.input_bytes(declared, datatype) > kernel.input_bytes(rung, datatype):
        return sizing.rung_name(context.sizes), rung
    return preset, declared


def params_at(
    context: GradingContext, kernel: Kernel, preset: str, turn: int = 0
) -> tuple[str, dict[str, int | float]]:
    """(name, sizes and knobs) of a preset with the ``turn``-th configuration, or the next that fits it."""
    name, sizes = sizes_at(context, kernel, preset)
    configs = kernel.configs[: context.settings.fuzz.config_pool] or ({},)
    for step in range(len(configs)):
        params = {**sizes, **configs[(turn + step) % len(configs)]}
        if kernel.broken_constraint(params) is None:
            return name, params
    return name, {**sizes, **configs[turn % len(configs)]}


@dataclass
class Untimed:
    """Runs the untimed cases of one grade. ``close`` it; its processes end, the oracle's goes back."""

    grading: Grading
    children: dict[str, Child] = field(default_factory=dict)
    """Candidates' processes that wait, by what they are for."""
    _oracle: tuple[str, Child] | None = field(default=None, repr=False)
    _asking: ThreadPoolExecutor | None = field(default=None, repr=False)
    _drawing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _lost: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def context(self) -> GradingContext:
        return self.grading.context

    @property
    def kernel(self) -> Kernel:
        return self.grading.submission.kernel

    @property
    def family(self) -> str:
        """The compiler family of the C reference: the candidate's."""
        return self.grading.submission.family

    @property
    def oracle_kinds(self) -> list[str]:
        """Who is asked, in order: as configured, else C; on scientific_computing who won the race."""
        first = self.context.settings.service.oracle
        if first not in denominators.ORACLE_KINDS:
            races = [result.race for result in self.grading.inputs if result.race is not None]
            leading = races[-1].winner if races and self.kernel.track == "scientific_computing" else "c"
            first = leading if leading in denominators.ORACLE_KINDS else "c"
        return sorted(denominators.ORACLE_KINDS, key=lambda kind: kind != first)

    def start_oracle(self) -> None:
        """Start the oracle's process now; it gets ready while the caller goes on."""
        if self._oracle is None:
            self._oracle = self._start_next()

    def _start_next(self) -> tuple[str, Child]:
        for kind in self.oracle_kinds:
            if kind in self._lost:
                continue
            try:
                return kind, self.context.references.start(self.kernel, kind, self.family)
            except JudgeFault as fault:
                self._lost[kind] = str(fault)
        raise JudgeFault(f"no reference of {self.kernel.name} can answer: {self._lost}")

    @contextlib.contextmanager
    def drawn(self, case: Case, *, answered: bool = True) -> Iterator[Drawn]:
        """The case's inputs, drawn into memory of the pool; the oracle begins to answer them."""
        context, kernel = self.context, self.kernel
        inputs, outputs = context.layouts(kernel, case.params)

        def fill(arrays: dict[str, npt.NDArray[Any]]) -> None:
            with self._drawing:  # both sides begin with their outputs, and drawing uses every core
                fuzz.fill(
                    kernel,
                    arrays,
                    case.params,
                    value_seed=case.value_seed,
                    structural_seed=case.structural_seed,
                    threads=context.threads,
                    datatype=context.settings.service.datatype,
                    variant=case.variant,
                )

        draw = Draw.allocate(inputs, context.pool, Start(outputs, fill))
        try:
            fill(draw.arrays)
            draw.seal()
            asked = self.grading.workspace_bytes(case.params)
            made = Drawn(
                case,
                draw,
                kernel.scalars(case.params),
                context.tolerances(kernel, case.params),
                max(asked, kernel.workspace_floor(case.params)),
            )
            if answered and kernel.input_bytes(case.params) < SIDE_BY_SIDE_BYTES:
                made.expected.append(self._ask(made))
            try:
                yield made
            finally:
                wait(made.expected)
        finally:
            draw.close()

    def _ask(self, drawn: Drawn) -> Future[Arrays]:
        if self._asking is None:
            self._asking = ThreadPoolExecutor(1, "oracle")
        return self._asking.submit(self._answers, drawn)

    def call(self, drawn: Drawn, child: Child) -> Failure | None:
        """One call of a candidate's child under the whole budget; None when it came to an answer.

        Raises JudgeFault when the judge's own sealing or memory failed.
        """
        budget = self.context.budget_s(self.kernel)
        outcome = child.call(
            drawn.draw, drawn.scalars, timeout_s=budget, workspace_bytes=drawn.workspace_bytes
        )
        if outcome.judges_fault:
            raise JudgeFault(outcome.detail)
        if outcome.status != "ok":
            return Failure(outcome.status, f"{outcome.status}: {outcome.detail}")
        if outcome.overrun:
            return Failure("wrong", f"wrote past the end of {outcome.overrun}")
        if outcome.fp_modes:
            note(self.grading, f"floating-point modes changed and restored: {outcome.fp_modes}")
        return None

    def answers(self, drawn: Drawn) -> Arrays:
        """The oracle's outputs, valid until the next draw. JudgeFault when no reference can answer."""
        return drawn.expected[0].result() if drawn.expected else self._answers(drawn)

    def _answers(self, drawn: Drawn) -> Arrays:
        while True:
            if self._oracle is None:
                self._oracle = self._start_next()
            kind, child = self._oracle
            budget = self.context.budget_s(self.kernel)
            outcome = child.call(
                drawn.draw, drawn.scalars, timeout_s=budget, workspace_bytes=drawn.workspace_bytes
            )
            if outcome.status == "ok":
                return child.outputs
            self._lost[kind] = f"{outcome.status}: {outcome.detail}"
            self._give_back()

    @property
    def answered_by(self) -> str:
        """The kind of the oracle in use."""
        self.start_oracle()
        assert self._oracle is not None
        return self._oracle[0]

    def compare(self, drawn: Drawn, produced: Arrays, expected: Arrays) -> Failure | None:
        """The first output outside its band, by name and count: no value of either side is told."""
        for name, tolerance in drawn.tolerances.items():
            found = precision.compare(
                np.asarray(produced[name]), expected[name], tolerance, threads=self.context.threads, name=name
            )
            if not found.ok:
                return Failure("wrong", f"{name} is wrong in {found.bad} of {expected[name].size} elements")
        return None

    def run(self, case: Case, child: Child) -> Failure | None:
        """Draw, call, compare with the oracle."""
        with self.drawn(case) as drawn:
            failure = self.call(drawn, child)
            return failure or self.compare(drawn, child.outputs, self.answers(drawn))

    def _give_back(self) -> None:
        if self._oracle is not None:
            self.context.references.discard(self._oracle[1])
            self._oracle = None

    @contextlib.contextmanager
    def candidate(self, name: str) -> Iterator[Child]:
        """A candidate's process started earlier; it ends with the block, and its memory with it."""
        child = self.children.pop(name)
        try:
            yield child
        finally:
            child.close()

    def close(self) -> None:
        """End the candidates' processes and give the oracle's back."""
        for child in self.children.values():
            child.close()
        self.children.clear()
        if self._asking is not None:
            self._asking.shutdown()
            self._asking = None
        self._give_back()


def note(grading: Grading, text: str) -> None:
    """Add a note to a grade, once."""
    if text not in grading.notes:
        grading.notes.append(text)
