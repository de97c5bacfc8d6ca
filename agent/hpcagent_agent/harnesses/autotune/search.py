"""Which variants to try: a short greedy walk from the plan that is usually best, judged by measured time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from . import emit
from .parse import parse
from .variants import Plan, Shapes, build

Answer = dict[str, Any]
WORTHWHILE = 1.02
"""A variant replaces the best one, or the reference, only when it is that much faster: less is noise."""


@dataclass(frozen=True)
class Trial:
    """One scored variant. ``gain`` is time of the reference over its own, 0 when it is not correct."""

    plan: Plan
    source: str
    gain: float
    answer: Answer


@dataclass
class Search:
    """The walk. ``score`` grades a source; ``accepts`` says whether it compiles, before a grade is spent."""

    source: str
    symbol: str
    shapes: Shapes
    score: Callable[[str], Answer]
    budget: int = 8
    threads: int = 1
    seconds_left: Callable[[], float] = lambda: math.inf
    accepts: Callable[[str], bool] = lambda source: True
    log: Callable[[Trial], None] = lambda trial: None
    trials: list[Trial] = field(default_factory=list)
    slowest_s: float = 0.0
    fault: str = ""

    def run(self) -> Trial | None:
        """Tries variants until the budget or the time is used up; the best correct one, or None."""
        seen = {emit.function(parse(self.source, self.symbol))}
        best: Trial | None = None
        for change in moves(self.threads):
            plan = change(best.plan, best.gain) if best else change(Plan(), 0.0)
            text = "" if plan is None else build(self.source, self.symbol, self.shapes, plan)
            if plan is None or text in seen:
                continue
            seen.add(text)
            if not self.accepts(text):
                continue
            if self.fault or len(self.trials) >= self.budget or not self._time_for_another():
                break
            trial = self._try(plan, text)
            if trial is not None and trial.gain > (best.gain * WORTHWHILE if best else 0.0):
                best = trial
        return best

    def _time_for_another(self) -> bool:
        """Whether one more grade and the submission, which takes longer, still fit."""
        return self.seconds_left() > 4 * self.slowest_s + 5

    def _try(self, plan: Plan, text: str) -> Trial | None:
        started = time.monotonic()
        answer = self.score(text)
        self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        if not answer.get("ok"):
            self.fault = f"{answer.get('status')}: {answer.get('error')}"
            return None
        trial = Trial(plan, text, gain(answer), answer)
        self.trials.append(trial)
        self.log(trial)
        return trial


Move = Callable[[Plan, float], Plan | None]


def moves(threads: int) -> Iterator[Move]:
    """Changes to the best plan so far, the most promising first; None where its gain says it is no use."""
    yield lambda plan, best: plan
    yield lambda plan, best: replace(plan, jam=4)
    yield lambda plan, best: replace(plan, jam=8 if plan.jam > 1 else 2)
    yield lambda plan, best: replace(plan, streams=8)
    yield lambda plan, best: replace(plan, past_cache=True)
    if threads > 1:
        yield lambda plan, best: replace(plan, parallel=True)
    for part in ("simd", "recompute", "reorder", "fuse"):
        yield _without(part)


def _without(part: str) -> Move:
    """Switches one part off, for when all of them together did not help."""
    return lambda plan, best: None if best > WORTHWHILE else replace(plan, **{part: False})


def gain(answer: Answer) -> float:
    """How many times faster than the reference, from the measured times; 0 when not correct.

    The judge credits only what is significant, which is too coarse to rank variants; the times are not.
    """
    if answer.get("correct") is not True:
        return 0.0
    timed = [(_number(c.get("baseline_ns")), _number(c.get("native_ns"))) for c in answer.get("cells") or ()]
    logs = [math.log(base / own) for base, own in timed if base > 0 and own > 0]
    if logs:
        return math.exp(sum(logs) / len(logs))
    base, own = _number(answer.get("baseline_ns")), _number(answer.get("native_ns"))
    return base / own if base > 0 and own > 0 else _number(answer.get("speedup"))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
