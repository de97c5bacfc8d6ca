"""Timed runs to credited ratios: the worked example of the scoring rules, and arithmetic by hand."""

import math

import pytest
from scipy import stats

from hpcagent_bench.harness import timing
from hpcagent_bench.stats import score_rule


def test_worked_example_runs_as_printed() -> None:
    r = timing.reduce_mannwhitney_delta([10, 11, 12, 13, 21], [20, 22, 24, 26, 12.5], p=0.1)
    score = score_rule.credit([r.speedup, 1.0, 2.0, 1.5], solved=True).score
    assert (round(r.speedup, 3), round(r.p_value or 0, 3), r.significant) == (1.833, 0.028, True)
    assert round(score, 3) == 1.531


def test_smallest_p_at_five_runs_a_side_is_one_in_252() -> None:
    assert timing.mannwhitney_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(1 / 252)


def test_exact_p_agrees_with_scipy_without_ties() -> None:
    low, high = [3.0, 9.0, 4.5, 1.0, 7.0], [8.0, 2.0, 11.0, 12.0, 6.0]
    expected = stats.mannwhitneyu(low, high, alternative="less", method="exact").pvalue
    assert timing.mannwhitney_p(low, high) == pytest.approx(expected)


def test_ties_count_every_split_of_the_mid_ranks() -> None:
    # ranks of (1,1 | 1,2) are 2,2,2,4: of the six splits, three have rank sum 4 and three have 6
    assert timing.mannwhitney_p([1, 1], [1, 2]) == pytest.approx(3 / 6)


def test_confirmed_slow_down_credits_its_ratio_below_one() -> None:
    r = timing.reduce_mannwhitney_delta([20, 21, 22, 23, 24], [10, 11, 12, 13, 14])
    assert r.significant
    assert r.speedup == pytest.approx(12 / 22)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [([5, 5, 5], [5, 5, 5]), ([1], [9, 9, 9]), ([], [1, 2]), ([0, 0, 3], [4, 5, 6])],
    ids=["equal medians", "one sample", "no sample", "one positive sample"],
)
def test_nothing_to_test_credits_one(mine: list[float], theirs: list[float]) -> None:
    assert timing.reduce_mannwhitney_delta(mine, theirs).speedup == 1.0


def test_stopped_candidate_is_credited_baseline_over_cap_at_most_half() -> None:
    cap = timing.guillotine_ns(3e9, factor=2.0, floor_s=1.0)
    assert cap == 6e9
    assert timing.reduce_stopped(3e9, 6e9).speedup == 0.5
    assert timing.guillotine_ns(1e6, factor=2.0, floor_s=1.0) == 1e9
    assert timing.reduce_stopped(1e6, 1e9).speedup == pytest.approx(0.001)
    assert timing.guillotine_ns(1e6, factor=0, floor_s=1.0) is None


def test_score_of_unsolved_or_all_suspect_task_is_one() -> None:
    assert score_rule.credit([4.0, 9.0], solved=False).score == 1.0
    assert score_rule.credit([], solved=True).score == 1.0


def test_score_is_the_geometric_mean_with_its_deviation() -> None:
    s = score_rule.credit([2.0, 8.0], solved=True)
    assert s.score == pytest.approx(4.0)
    assert s.gsd == pytest.approx(math.exp(math.sqrt(2 * math.log(2) ** 2)))
