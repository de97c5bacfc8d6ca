"""Timed runs of two sides become one credited ratio (scoring.md 1.5)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hpcagent_bench import protocols

EXACT_LIMIT = 10
"""Largest runs a side whose permutations are enumerated (C(20,10) = 184,756)."""

STOPPED_CREDIT_CAP = 0.5
"""What an input whose candidate was stopped is credited at most (scoring.md 1.3)."""


@dataclass(frozen=True)
class Reduction:
    """The reduced timing of one input. ``speedup`` is r_j, ``ratio`` the plain ratio of medians."""

    speedup: float
    ratio: float
    p_value: float | None
    significant: bool
    candidate: float
    baseline: float


def credited_protocol(stamp: str, configured: str) -> bool:
    """Whether a grade stamped ``stamp`` may be credited under measurement.credited_protocol."""
    return protocols.credited(configured).stamp == stamp


def mannwhitney_p(low: Sequence[float], high: Sequence[float]) -> float:
    """One-sided p that ``low`` is stochastically smaller than ``high``.

    Exact: every split of the pooled mid-ranks is counted, so ties need no correction (Lehmann,
    Nonparametrics, 1975, section 1.4). Above ten runs a side the tie-corrected normal
    approximation of scipy answers instead.
    """
    n = len(low)
    if max(n, len(high)) > EXACT_LIMIT:
        from scipy import stats  # slow to import, and the credited protocols never come here

        return float(stats.mannwhitneyu(low, high, alternative="less", method="asymptotic").pvalue)
    ranks = _midranks([*low, *high])
    observed = sum(ranks[:n])
    sums = [sum(chosen) for chosen in itertools.combinations(ranks, n)]
    return sum(s <= observed for s in sums) / len(sums)


def _midranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs. Halves at most, so sums are exact."""
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def reduce_mannwhitney_delta(
    candidate: Sequence[float], baseline: Sequence[float], p: float = 0.1
) -> Reduction:
    """r_j = median(baseline) / median(candidate) when the one-sided test confirms it at ``p``, else 1.

    Both sequences are times in one unit. The test looks in the direction the medians point, so a
    confirmed slow-down credits its sub-1 ratio. Equal medians, or fewer than two positive samples
    a side, credit 1 (scoring.md 1.5).
    """
    mine = [float(t) for t in candidate if t > 0]
    theirs = [float(t) for t in baseline if t > 0]
    if not mine or not theirs:
        return Reduction(1.0, 1.0, None, False, 0.0, 0.0)
    median_mine, median_theirs = statistics.median(mine), statistics.median(theirs)
    ratio = median_theirs / median_mine
    if len(mine) < 2 or len(theirs) < 2 or median_mine == median_theirs:
        return Reduction(1.0, ratio, None, False, median_mine, median_theirs)
    faster = median_mine < median_theirs
    p_value = mannwhitney_p(mine, theirs) if faster else mannwhitney_p(theirs, mine)
    significant = p_value < p
    return Reduction(ratio if significant else 1.0, ratio, p_value, significant, median_mine, median_theirs)


def guillotine_ns(baseline_ns: float, factor: float, floor_s: float) -> float | None:
    """The cap a candidate run may take: max(floor, factor x baseline), in ns; None when disabled."""
    if factor <= 0:
        return None
    return max(floor_s * 1e9, factor * baseline_ns)


def reduce_stopped(baseline_ns: float, cap_ns: float) -> Reduction:
    """A correct candidate that was stopped at the cap: credited baseline / cap, at most 0.5."""
    ratio = baseline_ns / cap_ns
    return Reduction(min(ratio, STOPPED_CREDIT_CAP), ratio, None, True, cap_ns, baseline_ns)
