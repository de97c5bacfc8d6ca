"""Structural distributions: condition numbers and eigenvalues as NumPy finds them, against the promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcagent_bench.corpus import datatypes, fuzz
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant

Maker = Callable[..., Kernel]


def matrix(make_kernel: Maker, dist: str, n: int, datatype: str = "float64", **more: Any) -> Any:
    kernel = make_kernel(A=f"{{shape: '(N, N)', dist: {dist}}}")
    a = np.empty((n, n), datatypes.numpy_dtype(datatype))
    fuzz.fill(kernel, {"A": a}, {"N": n, "M": 5}, value_seed=3, structural_seed=4, threads=2, **more)
    return a.astype(np.float64)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 300])
@pytest.mark.parametrize("datatype", ["float64", "float32", "bfloat16"])
def test_well_conditioned(make_kernel: Maker, n: int, datatype: str) -> None:
    a = matrix(make_kernel, "well_conditioned", n, datatype)
    assert np.linalg.cond(a, np.inf) < 7
    off = np.abs(a).sum(axis=1) - np.abs(np.diag(a))
    assert (off < np.abs(np.diag(a))).all()
    if n > 2:
        assert np.unique(a).size > n  # neither constant nor diagonal
        assert (np.diag(a) > 0).any()
        assert n < 7 or (np.diag(a) < 0).any()


@pytest.mark.parametrize("n", [2, 7, 64, 300])
@pytest.mark.parametrize("datatype", ["float64", "float32", "float16"])
def test_near_singular(make_kernel: Maker, n: int, datatype: str) -> None:
    a = matrix(make_kernel, "near_singular", n, datatype)
    root = np.sqrt(datatypes.epsilon(datatype))
    assert 0.1 / root < np.linalg.cond(a) < 100 / root


@pytest.mark.parametrize("n", [1, 3, 50, 200])
def test_stable_and_unstable(make_kernel: Maker, n: int) -> None:
    for dist, least, most in (("stable", 0.525, 0.975), ("unstable", 1.025, 1.475)):
        moduli = np.abs(np.linalg.eigvals(matrix(make_kernel, dist, n)))
        assert least < moduli.min()
        assert moduli.max() < most


def test_every_matrix_of_a_batch_has_the_structure(make_kernel: Maker) -> None:
    kernel = make_kernel(A="{shape: '(M, N, N)', dist: unstable}")
    a = np.empty((5, 20, 20))
    fuzz.fill(kernel, {"A": a}, {"N": 20, "M": 5}, value_seed=3, structural_seed=4, threads=1)
    assert (np.abs(np.linalg.eigvals(a)) > 1.025).all()
    assert np.unique(a).size == a.size


def test_a_variant_keeps_the_structure_and_scales_it(make_kernel: Maker) -> None:
    plain = matrix(make_kernel, "well_conditioned", 40)
    for variant in (Variant("h4", "uniform", 3.0), Variant("h5", "lognormal", 0.1)):
        scaled = matrix(make_kernel, "well_conditioned", 40, variant=variant)
        assert np.allclose(scaled, variant.scale * plain, rtol=1e-14)


def test_threads_do_not_matter(make_kernel: Maker) -> None:
    kernel = make_kernel(A="{shape: '(N, N)', dist: stable}")
    drawn = []
    for threads in (1, 5):
        a = np.empty((400, 400))
        fuzz.fill(kernel, {"A": a}, {"N": 400, "M": 5}, value_seed=3, structural_seed=4, threads=threads)
        drawn.append(a.tobytes())
    assert drawn[0] == drawn[1]
