"""In which order both sides of one input are called, on which draws, in which processes (scoring.md 1.3)."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from hpcagent_bench import protocols


@dataclass(frozen=True)
class InputSeeds:
    """Value seeds of one input: calls in order (warm-up first), the base draw, the structural arrays."""

    calls: tuple[int, ...]
    canonical: int


@dataclass(frozen=True)
class Turn:
    """One call of every side on one draw.

    ``name`` is how reasons name it. ``opens`` says that both sides begin new processes with it, and
    ``candidate_first`` who is called first.
    """

    seed: int
    name: str
    timed: bool = False
    opens: bool = False
    candidate_first: bool = False


def processes(protocol: protocols.Protocol) -> int:
    """How many processes a side of one input has under ``protocol``."""
    return protocol.runs if protocol.sampled == "run" else 1


def drawn_order(runs: int, rng: random.Random | None = None) -> tuple[bool, ...]:
    """Whether the candidate goes first in each timed run: in half of them, which half is drawn.

    A machine whose second slot is slower then favours neither side, and a candidate cannot know its slot.
    """
    source = rng or secrets.SystemRandom()
    coin = source.random() < 0.5
    order = [(number % 2 == 0) == coin for number in range(runs)]
    source.shuffle(order)
    return tuple(order)


def turns(protocol: protocols.Protocol, seeds: InputSeeds, order: Sequence[bool]) -> tuple[Turn, ...]:
    """Every call of one input: warm-up and timed runs, then the canonical call.

    Under an input-sampled protocol all run in one process a side, after one warm-up; under a run-sampled one
    each timed run has a process and a warm-up of its own, and the canonical call rides in the last.
    """
    warm_ups, timed = seeds.calls[: protocols.WARMUP], seeds.calls[protocols.WARMUP :]
    found: list[Turn] = []
    for number, (seed, first) in enumerate(zip(timed, order, strict=True), start=1):
        if number == 1 or protocol.sampled == "run":
            name = "warm-up" if protocol.sampled == "input" else f"warm-up of run {number}"
            found += [Turn(warm, name, opens=i == 0) for i, warm in enumerate(warm_ups)]
        found.append(Turn(seed, f"run {number}", timed=True, candidate_first=first))
    return (*found, Turn(seeds.canonical, "canonical"))
