"""Where the noise of timings comes from, and the smallest ratio that can be told through it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpcagent_bench.calibration.nominal import largest_u

Times = npt.NDArray[np.float64]

POWER = 0.8
LEVEL = 0.95
"""A task score is told from 1 beyond this quantile of what identical code scores."""
SIMULATIONS = 4000
LARGEST_RATIO = 4.0
MIN_INPUTS = 8
"""Fewer inputs say too little about the noise to simulate from."""
_STEP = 1e-4
"""Relative precision of the smallest ratio."""


@dataclass(frozen=True)
class Components:
    """Standard deviations of log time, as fractions (0.01 is 1 %): between processes, between draws, within.

    A negative estimate of a variance is no evidence of any and is 0.
    """

    between: float
    draws: float
    within: float


def components(tables: Sequence[npt.ArrayLike], *, crossed: bool = True) -> Components | None:
    """Variance components of log time by the method of moments, pooled over inputs.

    Each table holds one input: a row a process, a column a run. Crossed, column j of every row ran on one
    draw at about one moment, which is taken out; else runs are plain repetitions (one-way random effects)
    and ``draws`` is 0. With a rows, n columns:

        one-way:  E[MS between] = n s_b^2 + s_w^2,   E[MS within] = s_w^2
        crossed:  the same with E[MS residual] = s_w^2,   E[MS draws] = a s_d^2 + s_w^2

    (Searle, Casella and McCulloch, Variance Components, 1992, sections 3.6 and 4.3). Sums of squares and
    degrees of freedom are added over the inputs, which all need one shape. None without two rows and columns.
    """
    logs = [np.log(np.asarray(table, float)) for table in tables]
    if not logs or min(logs[0].shape) < 2:
        return None
    stacked = np.stack(logs)
    count, rows, columns = stacked.shape
    mean = stacked.mean(axis=(1, 2), keepdims=True)
    of_rows = stacked.mean(axis=2, keepdims=True) - mean
    of_columns = stacked.mean(axis=1, keepdims=True) - mean if crossed else np.zeros((count, 1, columns))
    rest = stacked - mean - of_rows - of_columns
    free_within = (rows - 1) * (columns - 1) if crossed else rows * (columns - 1)
    within = float((rest**2).sum()) / (count * free_within)
    between = columns * float((of_rows**2).sum()) / (count * (rows - 1))
    draws = rows * float((of_columns**2).sum()) / (count * (columns - 1)) if crossed else within
    return Components(
        math.sqrt(max(0.0, (between - within) / columns)),
        math.sqrt(max(0.0, (draws - within) / rows)),
        math.sqrt(within),
    )


def run_spread(pairs: Sequence[npt.ArrayLike]) -> float | None:
    """Standard deviation of one run's log time between two sides on one draw, as a fraction.

    Half the variance of the differences of both sides' logs about zero: what processes and runs add up to
    where every run has a process of its own. Each pair is (2, runs): candidate, baseline. None without any.
    """
    if not len(pairs):
        return None
    logs = np.log(np.stack([np.asarray(pair, float) for pair in pairs]))
    return float(np.sqrt(np.mean((logs[:, 0] - logs[:, 1]) ** 2) / 2))


def smallest_ratio(
    pairs: Sequence[npt.ArrayLike], inputs: int, alpha: float, *, seed: int = 0
) -> float | None:
    """The smallest true ratio at which a task's score is told from 1 four times in five, on this noise.

    A task is ``inputs`` inputs drawn at random from the recorded A/A pairs, each (2, runs), sides swapped by
    a coin; its score is the geometric mean of the credited ratios (scoring.md 1.5, 1.6). It is told from 1
    when it exceeds what identical code reaches in 5 % of tasks (the 0.95 quantile of |ln score|). The
    candidate's times are divided by the ratio, which is searched by bisection on one fixed set of draws
    (``seed``). Times of a pair are taken as free of ties. None: too few inputs, or above 4.
    """
    if len(pairs) < MIN_INPUTS:
        return None
    pool = np.stack([np.asarray(pair, float) for pair in pairs])
    limit = largest_u(pool.shape[2], alpha)
    rng = np.random.default_rng(seed)
    chosen = pool[rng.integers(len(pool), size=(SIMULATIONS, inputs))]
    swap = rng.integers(2, size=(SIMULATIONS, inputs, 1, 1)).astype(bool)
    chosen = np.where(swap, chosen[:, :, ::-1], chosen)
    candidate, baseline = chosen[:, :, 0], chosen[:, :, 1]
    critical = float(np.quantile(np.abs(_log_scores(candidate, baseline, limit)), LEVEL))

    def told(log_ratio: float) -> bool:
        scores = _log_scores(candidate / math.exp(log_ratio), baseline, limit)
        return bool(np.mean(scores > critical) >= POWER)

    low, high = 0.0, math.log(LARGEST_RATIO)
    if not told(high):
        return None
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if told(middle) else (middle, high)
    return math.exp(high)


def _log_scores(candidate: Times, baseline: Times, limit: int) -> Times:
    """ln S_i of each simulated task: (tasks, inputs, runs) of both sides to (tasks,)."""
    above = (candidate[..., :, None] > baseline[..., None, :]).sum(axis=(-2, -1))
    most = candidate.shape[-1] * baseline.shape[-1]
    credited = np.minimum(above, most - above) <= limit
    ratios = np.log(np.median(baseline, axis=-1) / np.median(candidate, axis=-1))
    scores: Times = np.where(credited, ratios, 0.0).mean(axis=-1)
    return scores
