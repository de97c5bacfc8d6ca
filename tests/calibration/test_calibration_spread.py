"""Variance components on textbook data and simulations; the smallest ratio that can be told from 1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcagent_bench.calibration import spread
from hpcagent_bench.harness import timing
from hpcagent_bench.stats import score_rule, summary

LOOMS = [[98, 97, 99, 96], [91, 90, 93, 92], [96, 95, 97, 95], [95, 96, 99, 98]]
"""Strength of fabric from four looms: mean squares 29.73 between and 1.90 within, components 6.96 and 1.90
(Montgomery, Design and Analysis of Experiments, chapter on random effects)."""

GRAFTS = [
    [90.3, 89.2, 98.2, 93.9, 87.4, 97.9],
    [92.5, 89.5, 90.6, 94.7, 87.0, 95.8],
    [85.5, 90.8, 89.6, 86.2, 88.0, 93.4],
    [82.5, 89.5, 85.6, 87.4, 78.9, 90.7],
]
"""Four pressures in six batches of resin, each once: mean squares 59.39, 38.45 and 7.33 (the same book, on
randomized complete block designs)."""


def test_one_way_components_of_the_looms() -> None:
    found = spread.components([np.exp(np.array(LOOMS, float))], crossed=False)
    assert found is not None
    assert found.between**2 == pytest.approx(6.96, abs=0.005)
    assert found.within**2 == pytest.approx(1.90, abs=0.005)
    assert found.draws == 0.0


def test_crossed_components_of_the_grafts() -> None:
    found = spread.components([np.exp(np.array(GRAFTS))])
    assert found is not None
    assert found.within**2 == pytest.approx(7.33, abs=0.005)
    assert found.between**2 == pytest.approx((59.39 - 7.33) / 6, abs=0.01)
    assert found.draws**2 == pytest.approx((38.45 - 7.33) / 4, abs=0.01)


def test_components_planted_in_many_inputs_are_found_again() -> None:
    rng = np.random.default_rng(2)
    shape = (4000, 2, 5)
    logs = (
        rng.normal(0, 3.0, (4000, 1, 1))  # each input has a size of its own
        + rng.normal(0, 0.04, (4000, 2, 1))
        + rng.normal(0, 0.05, (4000, 1, 5))
        + rng.normal(0, 0.02, shape)
    )
    found = spread.components(list(np.exp(logs)))
    assert found is not None
    assert [found.between, found.draws, found.within] == pytest.approx([0.04, 0.05, 0.02], rel=0.05)


def test_a_negative_estimate_is_no_spread() -> None:
    found = spread.components([[[1.0, 2.0], [2.0, 1.0]]], crossed=False)
    assert found is not None
    assert found.between == 0.0


def test_no_table_or_one_process_has_no_components() -> None:
    assert spread.components([]) is None
    assert spread.components([[[1.0, 2.0]]]) is None
    assert spread.run_spread([]) is None


def test_the_spread_of_runs_is_that_of_one_side() -> None:
    rng = np.random.default_rng(3)
    pairs = np.exp(rng.normal(0, 0.03, (3000, 2, 5)) + rng.normal(0, 0.5, (3000, 1, 5)))
    assert spread.run_spread(list(pairs)) == pytest.approx(0.03, rel=0.05)  # the shared draw cancels


@settings(max_examples=50)
@given(st.permutations(range(10)), st.floats(0.5, 2.0))
def test_simulated_scores_are_the_judges_own(order: list[int], ratio: float) -> None:
    """The vectorised credit equals the judge's reduction and score rule on times without ties."""
    times = 1.0 + 0.01 * np.array(order) + 1e-5 * np.array(order) ** 2
    candidate, baseline = times[:5] / ratio, times[5:]
    mine = spread._log_scores(candidate[None, None], baseline[None, None], 5)[0]
    reduced = timing.reduce_mannwhitney_delta(candidate.tolist(), baseline.tolist(), 0.1)
    assert mine == pytest.approx(math.log(score_rule.credit([reduced.speedup], True).score), abs=1e-12)


def noise(sigma: float, inputs: int = 300) -> list[np.ndarray]:
    return list(np.exp(np.random.default_rng(5).normal(0, sigma, (inputs, 2, 5))))


def test_the_smallest_ratio_grows_with_the_noise_and_needs_enough_inputs() -> None:
    ratios = [spread.smallest_ratio(noise(s), 4, 0.1) for s in (0.002, 0.01, 0.05)]
    assert all(ratio is not None for ratio in ratios)
    assert all(one < other for one, other in itertools.pairwise(r for r in ratios if r))
    assert spread.smallest_ratio(noise(0.01, 7), 4, 0.1) is None
    assert spread.smallest_ratio(noise(5.0), 4, 0.1) is None


def test_the_smallest_ratio_has_the_power_it_promises() -> None:
    """On fresh noise of the kind, tasks at that ratio beat 95 % of A/A tasks about four times in five."""
    found = spread.smallest_ratio(noise(0.02, 2000), 4, 0.1)
    assert found is not None
    rng = np.random.default_rng(9)
    times = np.exp(rng.normal(0, 0.02, (1500, 4, 2, 5)))

    def scores(ratio: float) -> np.ndarray:
        return np.array(
            [
                sum(
                    math.log(timing.reduce_mannwhitney_delta((c / ratio).tolist(), b.tolist(), 0.1).speedup)
                    for c, b in task
                )
                / 4
                for task in times
            ]
        )

    critical = np.quantile(np.abs(scores(1.0)), 0.95)
    assert np.mean(scores(found) > critical) == pytest.approx(0.8, abs=0.05)


def test_geometric_mean_and_its_interval() -> None:
    """The bootstrap interval of a mean log is near the normal theory's: mean +- 1.96 s / sqrt(n)."""
    values = np.exp(np.random.default_rng(1).normal(0.01, 0.05, 400))
    found = summary.geomean_ci(values.tolist())
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    logs = np.log(values)
    half = 1.96 * logs.std(ddof=1) / 20
    assert found.value == pytest.approx(math.exp(logs.mean()))
    assert math.log(found.low) == pytest.approx(logs.mean() - half, abs=0.1 * half)
    assert math.log(found.high) == pytest.approx(logs.mean() + half, abs=0.1 * half)
    assert summary.geomean_ci(values.tolist()) == found  # seeded


@pytest.mark.parametrize("values", [[2.0] * 8, [1.1, 1.2, 1.3, 1.4, 1.5]])
def test_equal_or_few_values_have_no_interval(values: list[float]) -> None:
    found = summary.geomean_ci(values)
    assert found is not None
    assert found.value == pytest.approx(score_rule.geometric_mean(values))
    assert (found.low, found.high) == (None, None)
