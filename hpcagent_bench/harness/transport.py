"""What lies between the two clocks of a call: the transport's delay, learnt from the judge's references.

A call is clocked inside the child and around the exchange with it. The gap between both is what the exchange
costs, the same for reference and candidate, and larger on a busy machine. A candidate that skews its own
clock widens the gap by what it hides; the references on the same input tell how wide is honest.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Runner = Literal["native", "python"]

RUNNERS: dict[str, Runner] = {"numba": "python", "numpy": "python"}
"""The runner of each reference kind that is not native; the Python one answers later."""

RECENT = 64
"""How many gaps of earlier inputs are remembered for each runner."""
ENOUGH = 10
"""How many must be known before their quantile is used."""
UNKNOWN_NS = 300_000
"""The gap allowed where no reference of the same runner ever ran: some times what a quiet machine shows."""


def runner_of(kind: str) -> Runner:
    """Which runner calls references of ``kind``."""
    return RUNNERS.get(kind, "native")


@dataclass
class Transport:
    """Gaps (outside minus inside, ns) of the judge's own children in this process, by runner."""

    recent: dict[Runner, deque[int]] = field(default_factory=dict)

    def note(self, gaps: Mapping[str, Sequence[int]]) -> None:
        """Remember the gaps of one input's references, by kind."""
        for kind, seen in gaps.items():
            known = self.recent.setdefault(runner_of(kind), deque(maxlen=RECENT))
            known.extend(seen)

    def slack_ns(self, runner: Runner, gaps: Mapping[str, Sequence[int]], margin_ns: float) -> float:
        """The widest honest gap of a call through ``runner``.

        The second widest of the references' gaps on the same input (the widest may be a preempted call's),
        or, where that is more, the upper decile of those seen before: a machine busy for a while delays some
        calls of an input and not others. Plus a margin. ``gaps`` are this input's, by reference kind.
        """
        same = [gap for kind, seen in gaps.items() if runner_of(kind) == runner for gap in seen]
        other = [gap for kind, seen in gaps.items() if runner_of(kind) != runner for gap in seen]
        before = self.recent.get(runner, ())
        bounds: list[float] = [_second_widest(same)]
        if len(before) >= ENOUGH:
            bounds.append(statistics.quantiles(before, n=10)[-1])
        elif not same:
            bounds += [UNKNOWN_NS, _second_widest(other)]
        return max(bounds) + margin_ns


def _second_widest(gaps: Sequence[int]) -> int:
    return sorted(gaps)[-2] if len(gaps) > 1 else max(gaps, default=0)
