"""What a call takes besides the work it reports: learnt from the judge's own references, call by call.

A call is clocked inside the child, around the exchange with it, and by the CPU time its process used. The
gaps between those clocks are what handing over and answering cost, the same for reference and candidate, and
the references on the same input tell how wide is honest. A candidate that hides time from its own clock
widens them by what it hides.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hpcagent_bench.harness.native_call import Outcome

Runner = Literal["native", "python"]

RUNNERS: dict[str, Runner] = {"numba": "python", "numpy": "python"}
"""The runner of each reference kind that is not native; the Python one answers later."""

RECENT = 64
"""How many calls before an input are remembered for each runner."""
SPREAD = 1.25
"""How much wider than the references' an honest candidate's gaps may be, besides the margin."""
ENOUGH = 10
"""How many must be known before their upper decile is used."""


class Gap(NamedTuple):
    """What one call took beside the time it reports, in ns.

    ``wall`` is the outside clock's reading beyond the inside one's, with CPU time used after the answer. It
    grows while the judge or the child waits for a processor. ``cpu`` is CPU time from GO until the child
    stood, beyond the inside clock's reading: it never grows by waiting, but tells nothing of a child that
    computes on several cores. ``load`` is CPU time used while the draw was handed over, before the call.
    """

    wall: float
    cpu: float
    load: float


NO_GAP = Gap(0.0, 0.0, 0.0)

UNKNOWN = Gap(300e3, 300e3, 1e6)
"""What is allowed where no reference of the same runner ever ran: some times what the Python runner shows."""


def gap_of(outcome: Outcome) -> Gap:
    """The gaps of one call that went well."""
    inside = outcome.inside_ns
    wall = outcome.outside_ns - inside + outcome.late_cpu_ns
    return Gap(wall, outcome.cpu_ns - inside, outcome.load_cpu_ns)


def median(gaps: Sequence[Gap]) -> Gap:
    """The median of each gap."""
    return Gap(*(statistics.median(values) for values in zip(*gaps, strict=True)))


def runner_of(kind: str) -> Runner:
    """Which runner calls references of ``kind``."""
    return RUNNERS.get(kind, "native")


@dataclass
class Transport:
    """Gaps of the judge's own children in this process, by runner."""

    recent: dict[Runner, deque[Gap]] = field(default_factory=dict)

    def note(self, gaps: Mapping[str, Sequence[Gap]]) -> None:
        """Remember the gaps of one input's references, by kind."""
        for kind, seen in gaps.items():
            self.recent.setdefault(runner_of(kind), deque(maxlen=RECENT)).extend(seen)

    def slack(self, runner: Runner, gaps: Mapping[str, Sequence[Gap]], margin_ns: float) -> Gap:
        """The widest honest gaps of a call through ``runner``.

        The second widest of the references' on the same input (the widest may be a preempted call's), or,
        where that is more, the upper decile of those seen before: a machine busy for a while delays some
        calls of an input and not others. Plus a share and a margin. ``gaps`` are this input's, by reference
        kind.
        """
        same = [gap for kind, seen in gaps.items() if runner_of(kind) == runner for gap in seen]
        other = [gap for kind, seen in gaps.items() if runner_of(kind) != runner for gap in seen]
        before = self.recent.get(runner, ())
        bounds = [_second_widest(same)] if same else []
        if len(before) >= ENOUGH:
            bounds.append(Gap(*(statistics.quantiles(v, n=10)[-1] for v in zip(*before, strict=True))))
        elif not same:
            bounds += [UNKNOWN, _second_widest(other)] if other else [UNKNOWN]
        return Gap(*(max(0.0, *values) * SPREAD + margin_ns for values in zip(*bounds, strict=True)))


def _second_widest(gaps: Sequence[Gap]) -> Gap:
    """Of each gap. A call that was preempted used less CPU time than passed: it tells nothing of that one."""
    wall, cpu, load = (sorted(values)[-2:] for values in zip(*gaps, strict=True))
    return Gap(wall[0], cpu[0] if cpu[0] > 0 else UNKNOWN.cpu, load[0])
