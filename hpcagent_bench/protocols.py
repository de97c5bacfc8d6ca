"""The registered measurement protocols: stamps that say how a grade was measured (scoring.md 1.1)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from hpcagent_bench.errors import UserError, did_you_mean

Role = Literal["preview", "final", "calibration"]
Sampled = Literal["input", "run"]
"""What gets a process of its own on each side: an input with all its runs, or every timed run."""

WARMUP = 1
"""Untimed calls each side runs first (scoring.md 1.1)."""


@dataclass(frozen=True)
class Protocol:
    """One way to measure a submission. ``stamp`` is recorded on every grade and never changes its meaning."""

    stamp: str
    role: Role
    inputs: int
    runs: int
    alpha: float
    timing_test: str = "mannwhitney_delta"
    sampled: Sampled = "input"

    @property
    def calls(self) -> int:
        """Calls a side of one input on pool draws, the warm-up included."""
        return WARMUP + self.runs


PREVIEW = Protocol("mw2x5", "preview", inputs=2, runs=5, alpha=0.1)
FINAL = Protocol("mw4x5", "final", inputs=4, runs=5, alpha=0.1)

PROCESS_FINAL = Protocol("mwp4x5", "final", inputs=4, runs=5, alpha=0.1, sampled="run")
"""As ``mw4x5``, but each of a side's five timed runs in a fresh process after a warm-up call of its own: a
process is one sample of code and memory layout, and five runs inside one process share it."""


def _calibration(final: Protocol) -> Protocol:
    """``<stamp>-aa``: the baseline timed against itself; nothing credits it."""
    return dataclasses.replace(final, stamp=f"{final.stamp}-aa", role="calibration")


REGISTRY: dict[str, Protocol] = {
    p.stamp: p for p in (PREVIEW, FINAL, PROCESS_FINAL, _calibration(FINAL), _calibration(PROCESS_FINAL))
}


def calibration_of(stamp: str) -> Protocol:
    """The calibration protocol beside the final protocol ``stamp``."""
    return get(f"{credited(stamp).stamp}-aa")


def get(stamp: str) -> Protocol:
    """The protocol registered under ``stamp``; an unknown stamp is a UserError naming the nearest."""
    if stamp not in REGISTRY:
        raise UserError(f"measurement protocol '{stamp}' is not registered", did_you_mean(stamp, REGISTRY))
    return REGISTRY[stamp]


def credited(stamp: str) -> Protocol:
    """The protocol whose grades are credited; it must be a final one (measurement.credited_protocol)."""
    protocol = get(stamp)
    if protocol.role != "final":
        raise UserError(
            f"measurement.credited_protocol={stamp} is a {protocol.role} protocol",
            f"name a final one: {', '.join(s for s, p in REGISTRY.items() if p.role == 'final')}",
        )
    return protocol
