"""From credited ratios of a task's inputs to its score S_i (scoring.md 1.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SCORE_RULE = "mw4x5"
"""Recorded on every credited grade; another rule is another name."""


@dataclass(frozen=True)
class Score:
    """A task score with the geometric standard deviation over its inputs, which gates nothing."""

    score: float
    gsd: float
    inputs: int
    rule: str = SCORE_RULE


def geometric_mean(values: Sequence[float]) -> float:
    """GM(x) = (prod x)^(1/n) of positive values, summed in logs; an empty sequence is a ValueError."""
    if not values:
        raise ValueError("geometric mean of nothing")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def credit(ratios: Sequence[float], solved: bool) -> Score:
    """S_i = GM of the valid inputs' ratios when the task is solved, else 1 (scoring.md 1.6).

    ``ratios`` are the r_j of the timed, graded, correct, non-suspect inputs. A task with no valid
    input is unsolved, whatever ``solved`` says. No ceiling, no floor.
    """
    if not solved or not ratios:
        return Score(1.0, 1.0, len(ratios))
    mean = geometric_mean(ratios)
    if len(ratios) < 2:
        return Score(mean, 1.0, len(ratios))
    spread = math.fsum((math.log(r) - math.log(mean)) ** 2 for r in ratios) / (len(ratios) - 1)
    return Score(mean, math.exp(math.sqrt(spread)), len(ratios))
