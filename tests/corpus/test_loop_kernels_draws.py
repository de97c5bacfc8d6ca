"""What the loop kernels by kind are given: branches both ways, late ends of searches, bounded sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_runs import computed, drawn

from hpcagent_bench.corpus import spec
from hpcagent_bench.support.distributions import hidden

VARIANTS = pytest.mark.parametrize("variant", hidden.HELD_OUT, ids=lambda variant: variant.label)
BRANCHES: dict[str, dict[str, Callable[..., Any]]] = {
    "stable_partition": {"low key": lambda key, **_: key < 0.25},
    "unpack_by_mask": {"flagged": lambda flag, **_: flag > 0.25},
    "pack_local_maxima": {"maximum": lambda x, **_: (x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])},
    "saturating_blend_int16": {
        "sum": lambda pick, **_: pick > 0,
        "clamped": lambda a, b, pick, **_: np.abs(a.astype(int) + np.sign(pick) * b) > 2**15,
    },
    "popcount_parity_sign": {"odd": lambda key, **_: np.bitwise_count(key) % 2 == 1},
    "conditional_moments": {"open": lambda gate, **_: gate > 0},
    "opcode_dispatch": {str(op): lambda opcode, op=op, **_: opcode == op for op in range(5)},
    "nested_quadrant_update": {
        "first": lambda x, y, **_: (x > 0) & (y > 0),
        "fourth, outside": lambda x, y, **_: (x > 0) & (y <= 0) & (x + y > 0),
        "fourth, inside": lambda x, y, **_: (x > 0) & (y <= 0) & (x + y <= 0),
        "second": lambda x, y, **_: (x <= 0) & (y > 0),
        "third": lambda x, y, **_: (x <= 0) & (y <= 0),
    },
}
"""Where each branch of a kernel is taken, from what it is given."""


@VARIANTS
@pytest.mark.parametrize("name", sorted(BRANCHES))
def test_every_branch_is_taken_under_every_distribution(name, variant):
    arrays = drawn(spec.load(name), {"LEN_1D": 2000}, variant=variant)
    for label, taken in BRANCHES[name].items():
        share = np.mean(taken(**arrays))
        assert 0.08 < share < 0.75, label


@VARIANTS
@pytest.mark.parametrize("tenths", [7, 9])
def test_the_quota_is_reached_late(tenths, variant):
    kernel, params = spec.load("prefix_quota_search"), {"LEN_1D": 3000, "TENTHS": tenths}
    needed = computed(kernel, drawn(kernel, params, variant=variant), params)["needed"][0]
    assert needed / 3000 == pytest.approx(tenths / 10, abs=0.03)


def test_the_mismatch_comes_late_and_moves_from_draw_to_draw():
    kernel, params = spec.load("first_mismatch"), {"LEN_1D": 1000}
    places = [computed(kernel, drawn(kernel, params, seed), params)["place"][0] for seed in range(20)]
    assert min(places) >= 750
    assert len(set(places)) > 10


@VARIANTS
def test_a_third_of_the_rows_has_no_steep_drop_and_the_others_meet_theirs_anywhere(variant):
    kernel, params = spec.load("row_first_steep_drop"), {"ROWS": 400}
    place = computed(kernel, drawn(kernel, params, variant=variant), params)["place"]
    assert np.mean(place < 0) == pytest.approx(np.exp(-1), abs=0.08)
    assert place.max() > 400
    assert np.median(place[place >= 0]) > 100


def test_the_recurrence_of_order_two_is_stable_in_every_configuration():
    configs = spec.load("order_two_recurrence").configs
    roots = [np.abs(np.roots([1, -row["LAG_ONE"], -row["LAG_TWO"]])).max() for row in configs]
    assert len(roots) == 5
    assert max(roots) < 0.93


@VARIANTS
@pytest.mark.parametrize(
    "name", ["skew_two_wavefront", "anisotropic_cube_wavefront", "minimax_path_wavefront"]
)
def test_wavefronts_stay_within_what_they_are_given(name, variant):
    """All are means, or choices, of what was there: a maximum principle holds."""
    kernel = spec.load(name)
    arrays = drawn(kernel, {}, variant=variant)
    for output, after in computed(kernel, arrays, {}).items():
        assert np.abs(after).max() <= np.abs(arrays[output]).max()
        assert np.mean(after != arrays[output]) > 0.5


def test_the_hash_fills_all_buckets_alike():
    """2**17 keys on 4096 buckets: 32 a bucket, Poisson, so between 5 and 80 in all of them."""
    kernel, params = spec.load("xorshift_bucket_sum"), {"LEN_1D": 2**17}
    arrays = drawn(kernel, params)
    arrays["x"][:] = 1.0
    arrays["bucket"][:] = 0.0
    counts = computed(kernel, arrays, params)["bucket"]
    assert counts.sum() == 2**17
    assert 5 < counts.min() < counts.max() < 80


def test_steps_of_a_chain_lead_on():
    """Links are a permutation without a shortcut: next to none point to themselves."""
    links = drawn(spec.load("linked_chain_sum"), {"LEN_1D": 5000, "CHAINS": 7})["next_node"]
    assert sorted(links) == list(range(5000))
    assert np.sum(links == np.arange(5000)) < 10
