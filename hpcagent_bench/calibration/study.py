"""Running an A/A study: kernels dealt in turn, every protocol and condition on each, until enough inputs."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpcagent_bench import config, protocols
from hpcagent_bench.calibration import neighbours
from hpcagent_bench.calibration.store import Done, Step, Store
from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.harness import denominator, grade_under
from hpcagent_bench.harness.context import GradingContext

QUIET, BUSY = "quiet", "busy"
LOOK_EVERY_S = 60.0
"""How often the node is looked at, between grades of the quiet condition."""

TRIES = 2
"""How often a kernel may give no input at all before it is left out: a busy machine spoils one grade."""

DRAW_RATE = 4e8
PROCESS_S = 0.05
CALLS = 14
"""What a grade is guessed to cost before any was made: bytes a second drawn, called and compared, the start
of a process, and the calls of one side of an input. Only for the first line a study prints."""


@dataclass(frozen=True)
class Goal:
    """What a study wants: ``pairs`` measured inputs of every protocol in every condition."""

    stamps: tuple[str, ...]
    conditions: tuple[str, ...]
    pairs: int

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Every (stamp, condition)."""
        return list(itertools.product(self.stamps, self.conditions))


def calibration_stamps(named: Sequence[str]) -> tuple[str, ...]:
    """The calibration protocols of the named ones (``mw4x5`` or ``mw4x5-aa``); none named is every one."""
    if not named:
        return tuple(stamp for stamp, p in protocols.REGISTRY.items() if p.role == "calibration")
    found = []
    for stamp in named:
        known = protocols.get(stamp)
        if known.role == "preview":
            finals = ", ".join(s for s, p in protocols.REGISTRY.items() if p.role == "final")
            raise UserError(f"--protocol {stamp}: no credited protocol", f"name one of: {finals}")
        found.append(stamp if known.role == "calibration" else protocols.calibration_of(stamp).stamp)
    return tuple(dict.fromkeys(found))


def eligible(pattern: str, settings: config.Judge) -> tuple[list[str], dict[str, str]]:
    """Kernels matching ``pattern`` whose references this judge can time, and why the others are left out."""
    corpus = spec.discover()
    names = sorted(fnmatch.filter(corpus, pattern))
    if not names:
        raise UserError(f"--kernels {pattern}: no kernel is called so", did_you_mean(pattern, corpus))
    kept, left = [], {}
    for name in names:
        try:
            denominator.for_kernel(spec.load(name), settings.measurement)
            kept.append(name)
        except UserError as error:
            left[name] = error.message
    if not kept:
        raise UserError(
            f"--kernels {pattern}: {next(iter(left.values()))}", "name kernels with a timed reference"
        )
    return kept, left


def steps(kernels: Sequence[str], goal: Goal) -> Iterator[list[Step]]:
    """Kernels in turn without end; each kernel's steps together, so that what drifts hits all alike."""
    for turn in itertools.count():
        for kernel in kernels:
            yield [
                Step(turn, kernel, condition, stamp) for condition in goal.conditions for stamp in goal.stamps
            ]


@dataclass
class Study:
    """One study going on. ``tell`` hears of every grade as (done inputs, wanted inputs, seconds left)."""

    context: GradingContext
    store: Store
    kernels: Sequence[str]
    goal: Goal
    tell: Callable[[str, int, int, float | None], None] = lambda text, done, wanted, left: None
    facts: Mapping[str, Any] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _looked: float | None = None
    _barren: Counter[tuple[str, str, str]] = field(default_factory=Counter, repr=False)

    def __post_init__(self) -> None:
        self.context.node.keep = self.store.look
        for done in self.store.done.values():
            self._count(done)

    @property
    def wanted(self) -> int:
        """Inputs of all protocols and conditions together."""
        return self.goal.pairs * len(self.goal.cells)

    @property
    def measured(self) -> int:
        """Of these, how many there are."""
        return sum(min(self.counts[cell], self.goal.pairs) for cell in self.goal.cells)

    def seconds_left(self) -> float | None:
        """From the recorded grades' durations, else guessed from sizes; None where these have no bound."""
        total = 0.0
        for stamp, condition in self.goal.cells:
            protocol = protocols.get(stamp)
            missing = max(0, self.goal.pairs - self.counts[stamp, condition])
            grades = -(-missing // protocol.inputs)
            cost = self._cost(stamp, condition, protocol)
            if cost is None:
                return None
            total += grades * cost
        return total

    def _cost(self, stamp: str, condition: str, protocol: protocols.Protocol) -> float | None:
        known = [
            d.seconds
            for d in self.store.done.values()
            if (d.step.stamp, d.step.condition) == (stamp, condition)
        ]
        if known:
            return sum(known) / len(known)
        if self.context.sizes.bytes is None:
            return None
        each = protocol.runs if protocol.sampled == "run" else 1
        return protocol.inputs * (2 * each * PROCESS_S + CALLS * self.context.sizes.bytes / DRAW_RATE)

    def run(self) -> None:
        """Grade until every protocol and condition has its inputs; UserError when no kernel gives more."""
        fruitless = 0
        for together in steps(self.kernels, self.goal):
            if self.measured >= self.wanted:
                return
            before = self.measured
            for step in together:
                if step.key not in self.store.done and self._short(step) and not self._hopeless(step):
                    self._grade(step)
            fruitless = 0 if self.measured > before or self._recorded(together) else fruitless + 1
            if fruitless > TRIES * len(self.kernels):
                faults = [d.fault for d in self.store.done.values() if d.fault]
                raise UserError(
                    f"no kernel of these can be measured: {faults[-1] if faults else 'no input came back'}",
                    "name others with --kernels",
                )

    def _short(self, step: Step) -> bool:
        return self.counts[step.stamp, step.condition] < self.goal.pairs

    def _hopeless(self, step: Step) -> bool:
        """Whether this kernel gave nothing here in several turns: it would not in this one."""
        return self._barren[step.kernel, step.stamp, step.condition] >= TRIES

    def _recorded(self, together: Sequence[Step]) -> bool:
        """Whether an earlier run of this study had measured something here."""
        return any(self.store.done[s.key].pairs for s in together if s.key in self.store.done)

    def _grade(self, step: Step) -> None:
        self._look(step)
        self.tell(
            f"{step.kernel} {step.stamp} {step.condition}", self.measured, self.wanted, self.seconds_left()
        )
        started = time.monotonic()
        beside = neighbours.busy() if step.condition == BUSY else contextlib.nullcontext(())
        with beside:
            verdict = grade_under.calibration_grade(self.context, spec.load(step.kernel), step.stamp)
        done = self.store.record(step, verdict, self.context.settings, time.monotonic() - started)
        self._count(done)

    def _count(self, done: Done) -> None:
        cell = (done.step.stamp, done.step.condition)
        measured = sum(pair.measured for pair in done.pairs)
        self.counts[cell] += measured
        if not measured:
            self._barren[done.step.kernel, done.step.stamp, done.step.condition] += 1

    def _look(self, step: Step) -> None:
        """Look at the node now and then, never beside neighbours of our own."""
        now = time.monotonic()
        if step.condition == QUIET and (self._looked is None or now - self._looked >= LOOK_EVERY_S):
            self._looked = now
            self.context.node.look()
