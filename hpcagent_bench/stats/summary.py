"""Setup aggregates: solved, success rate R, geometric means (scoring.md section 2, A1 and A2)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpcagent_bench.episodes import Work
from hpcagent_bench.stats.population import Answer, KernelAnswer, setup_kernel_answers
from hpcagent_bench.stats.score_rule import geometric_mean

BILLED = (1.0, 0.1, 1.0)
"""The default token card: weights of fresh input, cached input and output."""

MIN_PAIRS_FOR_INTERVAL = 6
"""Fewer values get an estimate and no interval (scoring.md section 7, A1)."""
RESAMPLES = 9999
SEED = 0


@dataclass(frozen=True)
class Geomean:
    """A geometric mean with its 95 % interval, which is None for too few values or for equal ones."""

    value: float
    low: float | None
    high: float | None


def geomean_ci(values: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> Geomean | None:
    """Geometric mean of positive values with the BCa bootstrap interval of their mean log (scoring.md A1).

    Equal values have no spread to resample, and BCa would answer NaN: the point stands alone. None of none.
    """
    if not values:
        return None
    point = geometric_mean(values)
    logs = [math.log(value) for value in values]
    if len(logs) < MIN_PAIRS_FOR_INTERVAL or max(logs) - min(logs) < 1e-12:
        return Geomean(point, None, None)
    import numpy as np
    from scipy import stats  # slow to import

    found = stats.bootstrap(
        (logs,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // len(logs)),
        method="BCa",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    low, high = math.exp(float(found.low)), math.exp(float(found.high))
    return Geomean(point, low, high) if low <= high else Geomean(point, None, None)


@dataclass(frozen=True)
class SetupSummary:
    """One setup over its designed tasks.

    ``rate`` is R = solved / tasks; ``gm`` the geometric mean of S_i over solved kernels, ``gm_all`` over all
    kernels with an unsolved one at 1. None where there is nothing to average; tokens are ``billed``.
    """

    setup: str
    tasks: int
    solved: int
    answered: int
    rate: float
    gm: float | None
    gm_all: float
    gm_tokens: float | None
    mean_tokens: float | None
    token_kernels: int


def summarise(
    designed: Iterable[Work],
    found: Mapping[Work, Answer],
    weights: tuple[float, float, float] = BILLED,
) -> list[SetupSummary]:
    """One summary a setup, in the design's order. A task is one (kernel, slot)."""
    work = list(dict.fromkeys(designed))
    kernels = setup_kernel_answers(work, found, weights)
    setups = dict.fromkeys(piece.setup for piece in work)
    return [_one(setup, work, found, kernels) for setup in setups]


def _one(
    setup: str,
    work: list[Work],
    found: Mapping[Work, Answer],
    kernels: Mapping[tuple[str, str], KernelAnswer],
) -> SetupSummary:
    tasks = [piece for piece in work if piece.setup == setup]
    held = [found[piece] for piece in tasks if piece in found]
    mine = [answer for (owner, _), answer in kernels.items() if owner == setup]
    solved = sum(answer.solved for answer in held)
    scores = [answer.score for answer in mine if answer.solved]
    tokens = [answer.tokens for answer in mine if answer.tokens is not None]
    return SetupSummary(
        setup=setup,
        tasks=len(tasks),
        solved=solved,
        answered=sum(answer.state in ("solved", "unsolved") for answer in held),
        rate=solved / len(tasks),
        gm=geometric_mean(scores) if scores else None,
        gm_all=geometric_mean([answer.score for answer in mine]),
        gm_tokens=geometric_mean(tokens) if tokens else None,
        mean_tokens=statistics.fmean(tokens) if tokens else None,
        token_kernels=len(tokens),
    )
