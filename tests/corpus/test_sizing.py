"""The timed rung and the size draws around it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcagent_bench.config import Sizes
from hpcagent_bench.corpus import sizing, spec
from hpcagent_bench.errors import UserError

CLASSES = {
    "aligned": lambda n: n % 64 == 0,
    "odd": lambda n: n % 2 == 1,
    "odd8": lambda n: n % 8 == 0 and (n // 8) % 2 == 1,
    "even": lambda n: n % 2 == 0 and n % 8 != 0,
}
NAMES = ("argmax_with_index", "ext_war_unit", "fuse_diamond", "tsvc_2_s115", "tsvc_2_s231", "tsvc_2_s311")
KERNELS = [spec.load(name) for name in NAMES]


def test_without_a_bound_the_rung_is_xl():
    for kernel in KERNELS:
        assert sizing.rung(kernel, Sizes("xl", None)) == kernel.presets["XL"]
        assert sizing.rung(kernel, Sizes("huge", 2**40)) == kernel.presets["XL"]
    assert sizing.rung_name(Sizes("xl", None)) == "XL"
    assert sizing.rung_name(Sizes("laptop", 2**26)) == "laptop"


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@given(bound=st.integers(min_value=100, max_value=2**32))
@settings(max_examples=30, deadline=None)
def test_a_bounded_rung_is_the_largest_that_fits(kernel, bound):
    sizes = sizing.rung(kernel, Sizes("bounded", bound))
    assert kernel.input_bytes(sizes) <= bound
    larger = {symbol: size + 1 for symbol, size in sizes.items()}
    assert sizes == kernel.presets["XL"] or kernel.input_bytes(larger) > bound


def test_by_hand():
    assert sizing.rung(spec.load("tsvc_2_vtvtv"), Sizes("laptop", 2**26)) == {"LEN_1D": 2**26 // 24}
    assert sizing.rung(spec.load("tsvc_2_s231"), Sizes("laptop", 2**26)) == {"LEN_2D": 2048}
    assert sizing.rung(spec.load("tsvc_2_s231"), Sizes("laptop", 2**26), "float32") == {"LEN_2D": 2896}


def test_a_bound_below_the_smallest_input_is_refused():
    with pytest.raises(
        UserError, match="bytes = 8 is too small for tsvc_2_s311; its smallest input takes 16"
    ):
        sizing.rung(spec.load("tsvc_2_s311"), Sizes("tiny", 8))


@given(rung=st.integers(256, 10**9), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_draws_lie_in_their_class_and_interval(rung, seed):
    kernel = spec.load("tsvc_2_s231")
    drawn = []
    for name, member in CLASSES.items():
        rng = np.random.default_rng(seed)
        size = sizing.draw_sizes(kernel, {"LEN_2D": rung}, name, rng, 0.75, 1.0)["LEN_2D"]
        assert member(size)
        assert 0.75 * rung <= size <= rung
        drawn.append(size)
    assert len(set(drawn)) == 4


@given(rung=st.integers(1, 255), seed=st.integers(0, 1000))
def test_tiny_rungs_still_give_four_distinct_sizes(rung, seed):
    kernel = spec.load("tsvc_2_s311")
    sizes = [
        sizing.draw_sizes(kernel, {"LEN_1D": rung}, name, np.random.default_rng(seed), 0.75, 1.0)["LEN_1D"]
        for name in CLASSES
    ]
    assert len(set(sizes)) == 4
    assert all(size >= 1 and CLASSES[name](size) for name, size in zip(CLASSES, sizes, strict=True))


def test_draws_are_uniform_over_the_interval():
    kernel, rng = spec.load("tsvc_2_s311"), np.random.default_rng(0)
    rung = {"LEN_1D": 100000}
    sizes = [sizing.draw_sizes(kernel, rung, "odd", rng, 0.75, 1.0)["LEN_1D"] for _ in range(4000)]
    counts, _ = np.histogram(sizes, bins=5, range=(75000, 100000))
    assert np.all(np.abs(counts - 800) < 5 * np.sqrt(800))  # five standard deviations of a fair share


def test_an_unknown_class_is_refused():
    with pytest.raises(UserError, match="size class 'od' does not exist; did you mean 'odd"):
        sizing.draw_sizes(KERNELS[0], {"LEN_1D": 9}, "od", np.random.default_rng(0), 0.75, 1.0)
