"""Integer arrays: intervals over sizes, row pointers, narrow and unsigned types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from hpcagent_bench.corpus import datatypes, fuzz
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError

Maker = Callable[..., Kernel]
N = 30_000


def draw(kernel: Kernel, n: int = N, m: int = 5, seed: int = 2, threads: int = 1) -> npt.NDArray[Any]:
    params = {"N": n, "M": m}
    dtype = datatypes.numpy_dtype(kernel.dtypes()["i"])
    arrays: dict[str, npt.NDArray[Any]] = {"i": np.empty(kernel.shapes(params)["i"], dtype)}
    fuzz.fill(kernel, arrays, params, value_seed=1, structural_seed=seed, threads=threads)
    return arrays["i"]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"])
def test_both_ends_of_an_interval_belong_to_it(make_kernel: Maker, dtype: str) -> None:
    kernel = make_kernel(i=f"{{shape: N, dtype: {dtype}, domain: [1, 'M + 1']}}")
    drawn = draw(kernel)
    counts = np.bincount(drawn.astype(np.int64))
    assert counts[0] == 0
    assert stats.chisquare(counts[1:]).pvalue > 1e-4
    assert counts.size == 7
    assert drawn.tobytes() == draw(kernel, threads=3).tobytes()


def test_indices_may_repeat_where_the_manifest_says_so(make_kernel: Maker) -> None:
    drawn = draw(make_kernel(i="{shape: N, dtype: int64, dist: uniform}"))
    assert 0 <= drawn.min() <= drawn.max() < N
    # N draws from N numbers leave out a share of 1/e, with a standard deviation of 0.17 sqrt(N)
    assert abs(np.unique(drawn).size - N * (1 - np.exp(-1))) < 5 * 0.31 * np.sqrt(N)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int16"])
def test_offsets_partition_their_span(make_kernel: Maker, dtype: str) -> None:
    kernel = make_kernel(i=f"{{shape: N + 1, dtype: {dtype}, dist: offsets, domain: [3, '3 + M * N']}}")
    n = 100_000 if dtype != "int16" else 1000
    drawn = draw(kernel, n, 24)
    assert (drawn[0], drawn[-1]) == (3, 3 + 24 * n)
    gaps = np.diff(drawn.astype(np.int64))
    assert gaps.min() >= 0
    assert gaps.max() <= 49
    assert drawn.tobytes() == draw(kernel, n, 24, threads=4).tobytes()
    assert drawn.tobytes() != draw(kernel, n, 24, seed=9).tobytes()
    if n > 1000:
        assert gaps.min() == 0  # empty rows occur
        # gaps uniform in 0 .. 48: the standard deviation of 48 U is 48 / sqrt(12)
        assert gaps.std() == pytest.approx(48 / np.sqrt(12), rel=0.02)
        assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize(("n", "expected"), [(0, [0]), (1, [0, 5])])
def test_the_shortest_offsets(make_kernel: Maker, n: int, expected: list[int]) -> None:
    kernel = make_kernel(i="{shape: N + 1, dtype: int64, dist: offsets, domain: [0, 'M * N']}")
    assert draw(kernel, n).tolist() == expected


def test_offsets_of_an_empty_span(make_kernel: Maker) -> None:
    kernel = make_kernel(i="{shape: N, dtype: int64, dist: offsets, domain: [7, 'M + 2']}")
    assert draw(kernel, 50).tolist() == [7] * 50


def test_four_bit_integers(make_kernel: Maker) -> None:
    drawn = draw(make_kernel(i="{shape: N, dtype: int4}"))
    assert drawn.dtype == np.int8
    assert stats.chisquare(np.bincount(drawn + 8, minlength=16)).pvalue > 1e-4
    with pytest.raises(UserError, match="array 'i': int4 cannot hold 0 to 8"):
        draw(make_kernel(i="{shape: N, dtype: int4, domain: [0, 8]}"))


def test_the_widest_unsigned_interval(make_kernel: Maker) -> None:
    drawn = draw(make_kernel(i=f"{{shape: N, dtype: uint64, domain: [1, {2**64 - 1}]}}"))
    assert stats.kstest(drawn.astype(np.float64) / 2.0**64, "uniform").pvalue > 1e-4
    high = draw(make_kernel(i=f"{{shape: N, dtype: uint64, domain: [{2**63 + 5}, {2**63 + 7}]}}"))
    assert set(np.unique(high).tolist()) == {2**63 + 5, 2**63 + 6, 2**63 + 7}
    with pytest.raises(UserError, match="holds 2\\^64 numbers"):
        draw(make_kernel(i=f"{{shape: N, dtype: uint64, domain: [0, {2**64 - 1}]}}"))


def test_spans_that_reject_many_words_stay_even(make_kernel: Maker) -> None:
    for span in (3 * 2**30, 2**32, 3 * 2**33):  # a quarter of the half words is rejected; none; whole words
        drawn = draw(make_kernel(i=f"{{shape: N, dtype: int64, domain: [-5, {span - 6}]}}"), 200_000)
        counts = np.bincount((drawn + 5) * 100 // span, minlength=100)
        assert counts.size == 100
        assert stats.chisquare(counts).pvalue > 1e-4


def test_an_interval_that_is_empty_at_some_size_is_refused(make_kernel: Maker) -> None:
    kernel = make_kernel(i="{shape: N, dtype: int64, domain: [0, 'N - 2']}")
    assert set(draw(kernel, 2).tolist()) == {0}
    with pytest.raises(UserError, match=r"array i has the empty domain \[0, -1\] under \{'N': 1"):
        draw(kernel, 1)


def test_booleans_are_fair(make_kernel: Maker) -> None:
    drawn = draw(make_kernel(i="{shape: N, dtype: bool}"))
    assert drawn.dtype == np.bool_
    assert stats.binomtest(int(drawn.sum()), N).pvalue > 1e-4
    assert set(np.unique(drawn.view(np.uint8)).tolist()) == {0, 1}
