"""Normal and lognormal draws: moments, tails and shape against scipy, one stream for every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from hpcagent_bench.corpus import draw_values
from hpcagent_bench.corpus.draw_values import Law

COUNT = 2_000_000


def draw(law: Law, dtype: str = "float64", count: int = COUNT, key: int = 7, threads: int = 2) -> Any:
    x: npt.NDArray[Any] = np.empty(count, dtype)
    draw_values.fill(x, law, key, threads)
    return x


def test_moments_and_tails_of_the_normal() -> None:
    x = draw(Law("normal", 1.0, None, None))
    # standard errors of mean, variance, skewness and excess kurtosis: 1, sqrt 2, sqrt 6, sqrt 24 over sqrt n
    for value, error in (
        (x.mean(), 1.0),
        (x.var() - 1.0, 2.0**0.5),
        (stats.skew(x), 6.0**0.5),
        (stats.kurtosis(x), 24.0**0.5),
    ):
        assert abs(value) < 5 * error / np.sqrt(COUNT)
    for edge in (0.5, 1.0, 2.0, 3.0, 3.6541528853610088, 4.0, 4.5):  # the tail layer begins at the fifth
        expected = COUNT * 2 * stats.norm.sf(edge)
        assert abs((np.abs(x) > edge).sum() - expected) < 5 * np.sqrt(expected)
    assert abs((x > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(COUNT)


def test_the_normal_is_even_on_a_fine_scale() -> None:
    cells = special.ndtr(draw(Law("normal", 1.0, None, None), key=8)) * 1000
    counts = np.bincount(cells.astype(np.int64), minlength=1000)[:1000]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_neighbours_are_independent() -> None:
    x = draw(Law("normal", 1.0, None, None), key=9)
    for lag in (1, 2, 4, 8, 1024, 32768):
        for y in (x, np.abs(x)):
            assert abs(np.corrcoef(y[:-lag], y[lag:])[0, 1]) < 5 / np.sqrt(COUNT - lag)


def test_the_lognormal_is_the_exponential_of_the_normal() -> None:
    z, x = draw(Law("normal", 1.0, None, None)), draw(Law("lognormal", 1.0, None, None))
    assert np.abs(x / np.exp(0.5 * z) - 1.0).max() < 4 * 2.0**-53
    mean, variance = stats.lognorm(0.5).stats("mv")
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / COUNT)


@pytest.mark.parametrize("dist", ["normal", "lognormal"])
def test_single_precision_is_the_rounded_double(dist: str) -> None:
    law = Law(dist, 3.0, None, "negative")
    assert np.array_equal(draw(law, "float32", 100_001), draw(law, count=100_001).astype(np.float32))


def test_an_interval_takes_the_law_affinely() -> None:
    law = stats.norm()
    x = draw(Law("normal", 1.0, (2.0, 10.0), None), count=200_000)
    assert x.min() >= 2.0
    assert x.max() <= 10.0
    assert stats.kstest(x[(x > 2) & (x < 10)] - 6.0, law.cdf).pvalue > 1e-4
    y = draw(Law("lognormal", 1.0, (-1.0, 1.0), None), count=200_000)
    assert -1.0 < y.min() < y.max() <= 1.0
    assert stats.kstest((y[y < 1] + 1.0) * 4.0, stats.lognorm(0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("count", [1, 5, 1023, 1025, 32769])
def test_a_shorter_array_is_a_prefix(count: int) -> None:
    law = Law("normal", 1.0, None, None)
    assert np.array_equal(draw(law, count=count), draw(law, count=40_000)[:count])
