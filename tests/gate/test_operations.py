"""Counts of operations against those one makes by hand."""

from __future__ import annotations

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus_check import operations

MATMUL = (
    "def probe(m, v, out, N):\n    for i in range(N):\n        for j in range(N):\n            s = 0.0\n"
    "            for k in range(N):\n                s = s + m[i, k] * m[k, j]\n            out[i, j] = s\n"
)
TRIANGLE = (
    "def probe(m, v, out, N):\n    for i in range(N):\n        for j in range(i):\n"
    "            out[i, j] = m[i, j] / v[j] - v[i]\n"
)
FUNCTIONS = (
    "import numpy as np\n\n\ndef probe(m, v, out, N):\n    for i in range(N // 2):\n"
    "        out[0, i] = np.sqrt(v[i]) + (-v[i]) ** 2\n"
)
EXACT = {
    "matmul": (MATMUL, lambda n: 2 * n**3),
    "triangle": (TRIANGLE, lambda n: n * (n - 1)),
    "functions": (FUNCTIONS, lambda n: 4 * (n // 2)),
    "nothing": ("def probe(m, v, out, N):\n    for i in range(N):\n        out[0, i] = v[i]\n", lambda n: 0),
}
ARRAYS = {"m": "(N, N)", "v": {"shape": "(N,)", "domain": "positive"}, "out": "(N, N)"}


@pytest.fixture
def counted(plant, root):
    def count(source, **arrays):
        plant(source, {**ARRAYS, **arrays}, ["out"])
        return operations.count(spec.load("probe", root))

    return count


@pytest.mark.parametrize(("source", "formula"), EXACT.values(), ids=list(EXACT))
def test_polynomial_counts_are_exact_at_every_rung(source, formula, counted):
    found = counted(source)
    assert found.exact
    sizes = {"S": 64, "M": 4096, "XL": 8192}
    assert {preset: found.per_preset[preset]["flops"] for preset in sizes} == {
        preset: formula(size) for preset, size in sizes.items()
    }


def test_what_depends_on_the_data_is_counted_at_s_and_scaled(counted):
    found = counted(
        "def probe(m, v, out, N):\n    for i in range(N):\n"
        "        if m[0, i] > 0:\n            out[0, i] = v[i] * 2.0\n"
    )
    assert not found.exact
    assert 16 < found.per_preset["S"]["flops"] < 48  # half of 64 on average
    assert found.per_preset["XL"]["flops"] > found.per_preset["S"]["flops"]


def test_integer_arithmetic_on_data_is_counted_apart(counted):
    source = (
        "def probe(m, v, out, N):\n    for i in range(N):\n        out[0, i] = (v[i] * 3 + v[i] // 2) / 7.0\n"
    )
    found = counted(source, v={"shape": "(N,)", "dtype": "int64", "domain": [0, 9]})
    assert found.per_preset["M"] == {"flops": 4096, "integer operations": 3 * 4096}


def test_complex_arithmetic_counts_as_real(counted):
    source = "def probe(m, v, out, N):\n    for i in range(N):\n        out[0, i] = v[i] * v[i] + v[i]\n"
    found = counted(
        source, v={"shape": "(N,)", "dtype": "complex128"}, out={"shape": "(N, N)", "dtype": "complex128"}
    )
    assert found.per_preset["S"]["flops"] == 64 * (6 + 2)
