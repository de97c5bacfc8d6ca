"""Reordered loops give the same where arithmetic is exact; truncated ones lose exactly what they say."""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus_check import reorderings
from hpcagent_bench.corpus_check.calls import copies, native_call, numpy_call
from hpcagent_bench.corpus_check.translation import Translation

SUM = "def probe(a, out, N):\n    s = 0.0\n    for i in range(N):\n        s += a[i] * a[i]\n    out[0] = s\n"
PRODUCT = "def probe(a, out, N):\n    p = 1.0\n    for i in range(N):\n        p *= a[i]\n    out[0] = p\n"
NESTED = (
    "def probe(a, out, N):\n    s = 0.0\n    for i in range(N):\n        for j in range(i, N):\n"
    "            s += a[i] * a[j]\n    out[0] = s\n"
)
LARGEST = (
    "def probe(a, out, N):\n    m = a[0]\n    for i in range(N):\n"
    "        if a[i] > m:\n            m = a[i]\n    out[0] = m\n"
)
SHIFT = "def probe(a, out, N):\n    for i in range(N - 1):\n        out[i] = a[i + 1] - a[i]\n"
CARRIED = "def probe(a, out, N):\n    for i in range(1, N):\n        out[i] = out[i - 1] + a[i]\n"
SIZES = (1, 2, 15, 16, 17, 64, 65, 200)


@pytest.fixture
def kernel_of(plant, root):
    def make(source):
        plant(source, {"a": "(N,)", "out": "(N,)"}, ["out"])
        return spec.load("probe", root)

    return make


def results(kernel, source, size):
    """NumPy's answer and that of a C source, on small whole numbers, whose sums are exact."""
    a = np.random.default_rng(size).choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], size)
    if "*=" in kernel.numpy_source.read_text():
        a = np.where(np.abs(a) > 1, 2.0, -1.0)  # powers of two: their products are exact
    arrays = {"a": a, "out": np.zeros(size)}
    answers = []
    for call in (numpy_call(kernel), native_call(kernel, source, "c")):
        work = copies(arrays)
        call(work, {"N": size})
        answers.append(work["out"])
    return a, *answers


APPLY = {
    "reversed loops": (SUM, PRODUCT, NESTED, LARGEST, SHIFT),
    "blocked sums": (SUM, PRODUCT, NESTED),
    "pairwise sums": (SUM, PRODUCT, NESTED),
}
CASES = [
    (reordering, source)
    for reordering in reorderings.HONEST
    for source in (SUM, PRODUCT, NESTED, LARGEST, SHIFT, CARRIED)
]


@pytest.mark.parametrize(("reordering", "source"), CASES, ids=lambda value: getattr(value, "label", "-"))
def test_an_honest_reordering_gives_the_same(reordering, source, kernel_of):
    kernel = kernel_of(source)
    rewritten = reordering.source(Translation(kernel))
    assert (rewritten is not None) == (source in APPLY[reordering.label])
    if rewritten is not None:
        for size in SIZES:
            _, expected, actual = results(kernel, rewritten, size)
            np.testing.assert_array_equal(actual, expected)


def test_reversed_loops_start_at_the_end(kernel_of):
    source = reorderings.HONEST[0].source(Translation(kernel_of(SHIFT)))
    assert source is not None
    assert "i--" in source or "i -= 1" in source


def test_sums_lose_their_last_term(kernel_of):
    kernel = kernel_of(SUM)
    a, expected, actual = results(kernel, reorderings.TRUNCATED.source(Translation(kernel)), 17)
    assert actual[0] == expected[0] - a[-1] ** 2


def test_extrema_lose_the_second_half(kernel_of):
    kernel = kernel_of(LARGEST)
    a, _, actual = results(kernel, reorderings.TRUNCATED.source(Translation(kernel)), 20)
    assert actual[0] == a[:10].max()


@pytest.mark.parametrize("source", [SHIFT, CARRIED])
def test_without_a_reduction_there_is_nothing_to_truncate(source, kernel_of):
    assert reorderings.TRUNCATED.source(Translation(kernel_of(source))) is None
