"""False credits against the nominal rate: enumeration by hand and by scipy, exact intervals, simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpcagent_bench import protocols
from hpcagent_bench.calibration import nominal, spread


def test_five_against_five_at_a_tenth_credits_38_of_252() -> None:
    """By hand: splits of ten ranks with U = 0..5 number 1, 1, 2, 3, 5, 7 = 19 (19/252 = 0.0754); U = 6 adds
    nine (28/252 = 0.111 > 0.1). Two directions."""
    assert nominal.nominal_rate(5, 0.1) == Fraction(2 * 19, 252)
    assert nominal.largest_u(5, 0.1) == 5
    for protocol in protocols.REGISTRY.values():
        assert nominal.nominal_rate(protocol.runs, protocol.alpha) == Fraction(38, 252)


@pytest.mark.parametrize(("runs", "alpha"), [(2, 0.1), (3, 0.1), (4, 0.05), (5, 0.1), (6, 0.1)])
def test_the_enumeration_agrees_with_scipys_exact_test(runs: int, alpha: float) -> None:
    credited = 0
    splits = list(itertools.combinations(range(2 * runs), runs))
    for mine in splits:
        others = [t for t in range(2 * runs) if t not in mine]
        faster = np.median(mine) < np.median(others)
        low, high = (mine, others) if faster else (others, mine)
        p = float(stats.mannwhitneyu(list(low), list(high), alternative="less", method="exact").pvalue)
        credited += p < alpha and np.median(mine) != np.median(others)
    assert nominal.nominal_rate(runs, alpha) == Fraction(int(credited), len(splits))


def test_too_few_runs_can_never_be_significant() -> None:
    assert nominal.nominal_rate(2, 0.1) == 0  # the smallest p is 1/6
    assert nominal.largest_u(2, 0.1) == -1


def test_no_false_credit_in_ten_has_the_interval_of_the_rule_of_three() -> None:
    """Clopper-Pearson at zero: the upper end solves (1 - p)^10 = 0.025."""
    found = nominal.rate(0, 10, 0.15)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 10))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_clopper_and_pearsons(counts: tuple[int, int]) -> None:
    """Its ends are quantiles of beta distributions, the textbook form."""
    count, of = counts
    found = nominal.rate(count, of, 0.15)
    low = stats.beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-9)
    assert found.low <= found.share <= found.high


def test_a_rate_of_a_third_in_96_is_told_from_the_nominal_one_and_15_percent_is_not() -> None:
    expected = float(nominal.nominal_rate(5, 0.1))
    third, fine = nominal.rate(33, 96, expected), nominal.rate(14, 96, expected)
    assert (third.kept, fine.kept) == (False, True)
    tail = sum(math.comb(96, k) * expected**k * (1 - expected) ** (96 - k) for k in range(33, 97))
    assert third.p_above == pytest.approx(tail)
    assert nominal.rate(2, 96, expected).kept  # crediting less often than nominal is no breach


def test_nothing_measured_says_nothing() -> None:
    assert (nominal.rate(0, 0, 0.15).low, nominal.rate(0, 0, 0.15).high) == (0.0, 1.0)


def credits(times: np.ndarray) -> int:
    """False credits of simulated inputs, (inputs, 2, runs), by the protocol's own rule."""
    limit = nominal.largest_u(times.shape[2], 0.1)
    scores = spread._log_scores(times[:, None, 0], times[:, None, 1], limit)
    return int(np.count_nonzero(scores))


def test_studies_of_independent_runs_keep_the_nominal_rate() -> None:
    """An exact 95 % interval lies wholly above the truth in at most 2.5 % of studies: of 200, hardly 13."""
    rng = np.random.default_rng(4)
    expected = float(nominal.nominal_rate(5, 0.1))
    studies = [credits(np.exp(rng.normal(0, 0.03, (500, 2, 5)))) for _ in range(200)]
    assert sum(not nominal.rate(count, 500, expected).kept for count in studies) < 13
    assert sum(studies) / 100_000 == pytest.approx(expected, abs=0.005)


def test_runs_that_share_a_process_do_not() -> None:
    """A layout effect as large as the noise, one draw a process: five runs are not five samples."""
    rng = np.random.default_rng(4)
    times = np.exp(rng.normal(0, 0.03, (400, 2, 5)) + rng.normal(0, 0.03, (400, 2, 1)))
    found = nominal.rate(credits(times), 400, float(nominal.nominal_rate(5, 0.1)))
    assert not found.kept
    assert found.p_above < 1e-6
