"""The five held-out distributions on every kind of array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from hpcagent_bench.corpus import fuzz, spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support.distributions import Variant, hidden

ARRAYS = {
    "count": "{shape: N, dtype: int64, domain: [2, 9]}",
    "flag": "{shape: N, dtype: bool}",
    "index": "{shape: N, dtype: int32}",
    "inside": "{shape: N, domain: [0.25, 0.5]}",
    "matrix": "{shape: '(M, M)', dist: stable}",
    "sign": "{shape: N, domain: positive}",
    "x": "(N,)",
}
LAWS: dict[str, Any] = {
    "h1": stats.uniform(-1000, 2000),
    "h2": stats.lognorm(0.5),
    "h3": stats.norm(),
    "h4": stats.uniform(-3000, 6000),
    "h5": stats.lognorm(0.5, scale=0.1),
}
FOLDED: dict[str, Any] = {
    **LAWS,
    "h1": stats.uniform(0, 1000),
    "h3": stats.halfnorm(),
    "h4": stats.uniform(0, 3000),
}


def draw(kernel: Kernel, variant: Variant | None) -> dict[str, npt.NDArray[Any]]:
    params = {"N": 50_000, "M": 5}
    types = kernel.dtypes()
    arrays: dict[str, npt.NDArray[Any]] = {n: np.empty(s, types[n]) for n, s in kernel.shapes(params).items()}
    fuzz.fill(kernel, arrays, params, value_seed=6, structural_seed=7, threads=2, variant=variant)
    return arrays


@pytest.mark.parametrize("variant", hidden.HELD_OUT, ids=lambda variant: variant.label)
def test_each_rotates_what_it_may(make_kernel: Callable[..., Kernel], variant: Variant) -> None:
    kernel = make_kernel(**ARRAYS)
    plain, varied = draw(kernel, None), draw(kernel, variant)
    for name in ("count", "flag", "index", "inside"):
        assert varied[name].tobytes() == plain[name].tobytes()
    assert np.allclose(varied["matrix"], variant.scale * plain["matrix"], rtol=1e-14)
    assert stats.kstest(varied["x"], LAWS[variant.label].cdf).pvalue > 1e-4
    assert stats.kstest(varied["sign"], FOLDED[variant.label].cdf).pvalue > 1e-4
    assert varied["sign"].min() > 0


def test_a_kernel_may_leave_a_distribution_out(make_kernel: Callable[..., Kernel], tmp_path: Path) -> None:
    kernel = make_kernel(**ARRAYS)
    path = kernel.folder / "made_up.yaml"
    path.write_text(path.read_text() + "fuzz: {data_distributions: [uniform, normal]}\n")
    kernel = spec.load("made_up", tmp_path)
    plain = draw(kernel, None)["x"]
    assert np.allclose(draw(kernel, Variant("h5", "lognormal", 0.1))["x"], 0.1 * plain, rtol=1e-14)
    assert stats.kstest(draw(kernel, Variant("h3", "normal"))["x"], stats.norm().cdf).pvalue > 1e-4
