"""The references of llr40 against whole-array NumPy written from the formulas alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hpcagent_bench import study_tags
from hpcagent_bench.corpus import fuzz, spec
from hpcagent_bench.support.distributions import hidden

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Formula = Callable[..., dict[str, Any]]
KERNELS = study_tags.load_tag("llr40")
FORMULAS: dict[str, Formula] = {}
SIZES = (1, 2, 3, 5, 6, 7, 64, 65)


def formula(function: Formula) -> Formula:
    """File a formula under its kernel's name; it returns what each output must be."""
    FORMULAS[function.__name__] = function
    return function


def replaced(array: Array, index: Any, values: Any) -> Array:
    """A copy of ``array`` with ``values`` at ``index``."""
    copy = array.copy()
    copy[index] = values
    return copy


def column_sums(start: Array, steps: Array) -> Array:
    """``start`` as the first row, then its running sum with ``steps`` down the columns."""
    return np.cumsum(np.vstack([start[:1], steps[1:]]), axis=0)


@formula
def argmax_with_index(a, **_):
    return {"out_value": [a.max()], "out_index": [a.argmax()]}


@formula
def compact_threshold_pack(out, src, weight, **_):
    packed = (src * weight)[src > 0]
    return {"out": replaced(out, slice(packed.size), packed), "out_count": [packed.size]}


@formula
def ext_break_capture(a, K, **_):
    hits = np.flatnonzero(a > K)
    return {"out_index": [hits[0] if hits.size else -1], "out_value": [a[hits[0]] if hits.size else -1]}


@formula
def ext_war_unit(a, b, **_):
    return {"a": np.append(a[1:] + b[:-1], a[-1])}


@formula
def fuse_diamond(a, **_):
    return {"out": a**4 - 1}


@formula
def fuse_move_ifs(a, b, cond, src, K, **_):
    return {"a": np.where(cond[:, None] > 0, 2 * src, a), "b": src + 1 if K > 0 else b}


@formula
def fuse_stencil_through_transient(a, out, LEN_1D, **_):
    if LEN_1D < 4:
        return {"out": out}
    sums = np.convolve(a, np.ones(3), "valid")
    return {"out": replaced(out, slice(1, -2), sums[:-1] * sums[1:])}


@formula
def quasi_affine_reduce_odd(a, **_):
    return {"out": [a[1::2].sum()]}


@formula
def scan_affine_decay(c, x, LEN_1D, **_):
    """y[i] is the sum of x[j] times the factors between j and i."""
    factors = [[np.prod(c[j + 1 : i + 1]) if j <= i else 0 for j in range(LEN_1D)] for i in range(LEN_1D)]
    return {"y": np.array(factors) @ x}


@formula
def scatter_accum_dup(bins, ip, src, NBINS, **_):
    return {"bins": bins + np.bincount(ip, src, NBINS)}


@formula
def segment_reduce_ragged(row_ptr, val, w, **_):
    before = np.append(0, np.cumsum(val * w))[row_ptr]
    return {"out": np.diff(before)}


@formula
def tsvc_2_s115(a, aa, LEN_2D, **_):
    return {"a": np.linalg.solve(np.eye(LEN_2D) + np.triu(aa, 1).T, a)}


@formula
def tsvc_2_s119(aa, bb, LEN_2D, **_):
    """Element (i, j) starts at the edge min(i, j) steps back and gains bb along its diagonal."""
    expected = aa.copy()
    for offset in range(1 - LEN_2D, LEN_2D):
        i = np.arange(max(0, -offset), min(LEN_2D, LEN_2D - offset))
        expected[i, i + offset] = np.cumsum(np.append(aa[i[0], i[0] + offset], bb[i[1:], i[1:] + offset]))
    return {"aa": expected}


@formula
def tsvc_2_s1232(aa, bb, cc, LEN_2D, **_):
    rows, columns = np.indices(aa.shape)
    return {"aa": np.where((columns % 8 == 0) & (columns <= rows), bb + cc, aa)}


@formula
def tsvc_2_s1244(a, b, c, d, **_):
    new = (b + c**2 + b**2 + c)[:-1]
    return {"a": np.append(new, a[-1]), "d": np.append(new + a[1:], d[-1])}


@formula
def tsvc_2_s152(a, c, d, e, **_):
    return {"b": d * e, "a": a + d * e * c}


@formula
def tsvc_2_s2233(aa, bb, cc, LEN_2D, **_):
    if LEN_2D <= 8:
        return {"aa": aa, "bb": bb}
    inner = (slice(8, None), slice(8, None))
    return {
        "aa": replaced(aa, inner, column_sums(aa[7:, 8:], cc[7:, 8:])[1:]),
        "bb": replaced(bb, inner, column_sums(bb[7:, 8:], cc[7:, 8:])[1:]),
    }


@formula
def tsvc_2_s2275(aa, b, bb, c, cc, d, **_):
    return {"aa": aa + bb * cc, "a": b + c * d}


@formula
def tsvc_2_s231(aa, bb, **_):
    return {"aa": column_sums(aa, bb)}


@formula
def tsvc_2_s233(aa, bb, cc, **_):
    columns = replaced(aa, (slice(1, None), slice(1, None)), column_sums(aa, cc)[1:, 1:])
    rows = replaced(bb, (slice(1, None), slice(1, None)), column_sums(bb.T, cc.T).T[1:, 1:])
    return {"aa": columns, "bb": rows}


@formula
def tsvc_2_s235(a, aa, b, bb, c, **_):
    return {"a": a + b * c, "aa": column_sums(aa, bb * (a + b * c))}


@formula
def tsvc_2_s252(b, c, **_):
    return {"a": b * c + np.append(0, (b * c)[:-1])}


@formula
def tsvc_2_s255(b, LEN_1D, **_):
    before = np.roll(b, 2) if LEN_1D > 1 else b
    return {"a": 0.333 * (b + np.roll(b, 1) + before)}


@formula
def tsvc_2_s2710(a, b, c, d, e, x, LEN_1D, **_):
    larger = a > b
    then = c + d * d if LEN_1D > 10 else d * e + 1
    otherwise = a + d * d if x[0] > 0 else c + e * e
    return {
        "a": np.where(larger, a + b * d, a),
        "b": np.where(larger, b, a + e * e),
        "c": np.where(larger, then, otherwise),
    }


@formula
def tsvc_2_s275(aa, bb, cc, **_):
    return {"aa": np.where(aa[0] > 0, column_sums(aa, bb * cc), aa)}


@formula
def tsvc_2_s311(a, sum_out, **_):
    return {"sum_out": replaced(sum_out, 0, a.sum())}


@formula
def tsvc_2_s3110(aa, **_):
    row, column = np.unravel_index(aa.argmax(), aa.shape)
    return {"bb": [[aa.max() + row + column + 2]]}


@formula
def tsvc_2_s3111(a, **_):
    return {"b": [a[a > 0].sum()]}


@formula
def tsvc_2_s3112(a, **_):
    return {"b": np.cumsum(a)}


@formula
def tsvc_2_s316(a, **_):
    return {"result": [a.min()]}


@formula
def tsvc_2_s318(a, **_):
    return {"result": [np.abs(a).max() + np.abs(a).argmax() + 1]}


@formula
def tsvc_2_s319(c, d, e, **_):
    return {"a": c + d, "b": replaced(c + e, 0, (2 * c + d + e).sum())}


@formula
def tsvc_2_s323(a, b, c, d, e, **_):
    sums = np.append(b[:1], b[0] + np.cumsum((c * (d + e))[1:]))
    return {"b": sums, "a": np.append(a[:1], sums[:-1] + (c * d)[1:])}


@formula
def tsvc_2_s4112(a, b, ip, **_):
    return {"a": a + 2 * b[ip]}


@formula
def tsvc_2_vag(b, ip, **_):
    return {"a": b[ip]}


@formula
def tsvc_2_vpvts(a, b, **_):
    return {"a": a + 2 * b}


@formula
def tsvc_2_vtvtv(a, b, c, **_):
    return {"a": a * b * c}


@formula
def versioned_distance_update(a, b, c, K, LEN_1D, **_):
    """K chains side by side, each a filter with impulse response 0.75**n."""
    expected = a.copy()
    for lane in range(min(K, LEN_1D)):
        chain = np.append(a[lane], (b * c)[lane + K :: K])
        n = np.arange(chain.size)
        decay = np.where(n[:, None] >= n, 0.75 ** np.maximum(n[:, None] - n, 0), 0)
        expected[lane::K] = decay @ chain
    return {"a": expected}


@formula
def wf_diff_skew(a, **_):
    rows = [a[0]]
    for row in a[1:]:
        above = rows[-1]
        rows.append(np.append(row[:-1] + (above[:-1] + above[1:]) / 2, row[-1]))
    return {"a": np.array(rows)}


@formula
def wf_triangular(a, LEN_2D, **_):
    grid = a.copy()
    for front in range(2, 2 * LEN_2D - 1):
        i = np.arange(max(1, front - LEN_2D + 1), front // 2 + 1)
        grid[i, front - i] += 0.5 * (grid[i - 1, front - i] + grid[i, front - i - 1])
    return {"a": grid}


def draw(kernel: spec.Kernel, params: dict[str, Any], seed: int = 5, variant: Any = None) -> Arrays:
    return fuzz.drawn(kernel, params, value_seed=seed, structural_seed=seed, variant=variant)


def run(kernel: spec.Kernel, arrays: Arrays, params: dict[str, Any]) -> Arrays:
    """The outputs of the reference, which works on copies."""
    values = {**kernel.scalars(params), **{name: array.copy() for name, array in arrays.items()}}
    kernel.load_numpy()(*(values[name] for name in kernel.arg_order))
    return {name: values[name] for name in kernel.outputs}


def test_every_kernel_of_the_roster_has_its_formula() -> None:
    assert sorted(FORMULAS) == sorted(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_reference_computes_its_formula(name: str) -> None:
    kernel = spec.load(name)
    for size in SIZES:
        for config in kernel.configs:
            params = {**dict.fromkeys(kernel.size_symbols, size), **config}
            arrays = draw(kernel, params)
            actual = run(kernel, arrays, params)
            with np.errstate(over="raise", invalid="raise"):
                expected = FORMULAS[name](**arrays, **kernel.scalars(params))
            assert set(expected) == set(kernel.outputs)
            for output, values in expected.items():
                scale = np.abs(arrays_of(arrays)).max() ** 2
                np.testing.assert_allclose(actual[output], values, rtol=1e-9, atol=1e-12 * scale)


def arrays_of(arrays: Arrays) -> Array:
    """All real values of a draw, one after the other."""
    return np.concatenate([array.ravel() for array in arrays.values() if array.dtype.kind == "f"])


BRANCHES: dict[str, Callable[..., float]] = {
    "compact_threshold_pack": lambda src, **_: (src > 0).mean(),
    "fuse_move_ifs": lambda cond, **_: (cond > 0).mean(),
    "tsvc_2_s2710": lambda a, b, **_: (a > b).mean(),
    "tsvc_2_s275": lambda aa, **_: (aa[0] > 0).mean(),
    "tsvc_2_s3111": lambda a, **_: (a > 0).mean(),
}
"""How often the branch of a kernel is taken."""


@pytest.mark.parametrize("variant", [None, *hidden.HELD_OUT], ids=lambda v: v.label if v else "timed")
@pytest.mark.parametrize("name", sorted(BRANCHES))
def test_both_branches_are_taken_under_every_distribution(name: str, variant: Any) -> None:
    kernel = spec.load(name)
    arrays = draw(kernel, dict.fromkeys(kernel.size_symbols, 400), variant=variant)
    assert 0.35 < BRANCHES[name](**arrays) < 0.65


def test_the_sign_that_decides_s2710_changes_from_draw_to_draw() -> None:
    kernel = spec.load("tsvc_2_s2710")
    signs = [draw(kernel, {"LEN_1D": 16}, seed)["x"][0] > 0 for seed in range(40)]
    assert 8 < sum(signs) < 32


def test_a_search_ends_late_as_a_rule_and_early_or_never_now_and_then() -> None:
    kernel = spec.load("ext_break_capture")
    params = {"LEN_1D": 1000, "K": 500.0}
    draws = [run(kernel, draw(kernel, params, seed), params)["out_index"][0] for seed in range(200)]
    found = np.array([index for index in draws if index >= 0])
    assert 5 < len(draws) - len(found) < 40  # one of eleven has no hit
    assert np.median(found) > 980
    assert (found < 500).sum() > 3


def test_behind_the_hit_nothing_is_folded_below_the_threshold() -> None:
    kernel = spec.load("ext_break_capture")
    params = {"LEN_1D": 4000, "K": 100.0}
    shares = []
    for seed in range(60):
        a = draw(kernel, params, seed)["a"]
        hits = np.flatnonzero(a > 100.0)
        if hits.size and hits[0] < 3000:
            shares.append((a[hits[0] :] > 100.0).mean())
    assert len(shares) > 3
    assert 0.4 < np.mean(shares) < 0.5  # (1000 - 100) / 2000 of them
