"""How often a protocol credits identical code by its own arithmetic, and what was counted against that."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from fractions import Fraction

from hpcagent_bench.harness import timing

CONFIDENCE = 0.95


@functools.cache
def nominal_rate(runs: int, alpha: float) -> Fraction:
    """The share of inputs that ``runs`` a side credit, faster or slower, when both sides are one code.

    Exact: identical sides make every split of the 2n distinct times into two halves equally likely, so the
    protocol's own reduction is asked about each of the C(2n, n) splits. At five runs and alpha 0.1 it is
    38 of 252: rank sums up to 20 have 19 splits a direction, 19/252 = 0.075 < 0.1, and the next, 21, would
    bring it to 28/252 = 0.111.
    """
    times = range(1, 2 * runs + 1)
    splits = list(itertools.combinations(times, runs))
    credited = 0
    for mine in splits:
        others = [t for t in times if t not in mine]
        credited += timing.reduce_mannwhitney_delta(mine, others, alpha).significant
    return Fraction(credited, len(splits))


@functools.cache
def largest_u(runs: int, alpha: float) -> int:
    """The largest U (times of the faster side above one of the slower, in pairs) that is still credited.

    -1 when no split is significant. For times without ties, U of two samples decides the exact test.
    """
    best = -1
    for mine in itertools.combinations(range(1, 2 * runs + 1), runs):
        others = [t for t in range(1, 2 * runs + 1) if t not in mine]
        if timing.mannwhitney_p(mine, others) < alpha:
            best = max(best, sum(m > o for m in mine for o in others))
    return best


@dataclass(frozen=True)
class Rate:
    """``count`` of ``of`` with its exact (Clopper-Pearson) 95 % interval, against a nominal rate.

    ``p_above`` is the exact chance of so many or more at the nominal rate.
    """

    count: int
    of: int
    low: float
    high: float
    nominal: float
    p_above: float

    @property
    def share(self) -> float:
        """The observed rate; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    @property
    def kept(self) -> bool:
        """Whether the nominal rate is not exceeded: the interval reaches down to it."""
        return self.low <= self.nominal


def rate(count: int, of: int, nominal: float) -> Rate:
    """``count`` false credits among ``of`` inputs (Clopper and Pearson, Biometrika 26, 1934)."""
    if of == 0:
        return Rate(0, 0, 0.0, 1.0, nominal, 1.0)
    from scipy import stats  # slow to import

    interval = stats.binomtest(count, of).proportion_ci(CONFIDENCE, method="exact")
    above = stats.binomtest(count, of, nominal, alternative="greater").pvalue
    return Rate(count, of, float(interval.low), float(interval.high), nominal, float(above))
