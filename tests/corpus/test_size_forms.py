"""Sizes of preset ``fuzzed``: how they are read, what they draw, how rung and size classes treat them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcagent_bench.config import Sizes
from hpcagent_bench.corpus import size_forms, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError

Writer = Callable[..., Kernel]


def sized(fuzzed: dict[str, Any], xl: dict[str, int], **more: Any) -> dict[str, Any]:
    """Manifest keys with the given fuzzed preset; S, M and L are XL over 1000, 100 and 10."""
    presets: dict[str, Any] = {
        preset: {s: max(1, v // part) for s, v in xl.items()}
        for preset, part in (("S", 1000), ("M", 100), ("L", 10), ("XL", 1))
    }
    return {"parameters": {**presets, "fuzzed": fuzzed}, **more}


def draws(kernel: Kernel, size_class: str, rung: dict[str, int] | None = None) -> list[dict[str, int]]:
    full = kernel.presets["XL"] if rung is None else rung
    return [
        sizing.draw_sizes(kernel, full, size_class, np.random.default_rng(seed), 0.75, 1.0)
        for seed in range(60)
    ]


def test_smooth_numbers() -> None:
    # OEIS A002473, the 7-smooth numbers
    assert size_forms.smooth_numbers(20, 42, 7) == [20, 21, 24, 25, 27, 28, 30, 32, 35, 36, 40, 42]
    assert size_forms.snap_down(71, 7) == 70
    assert size_forms.snap_down(4097, 2) == 4096


def test_smooth_sizes_take_the_nearest_member_of_their_class(write_kernel: Writer) -> None:
    kernel = write_kernel(sized({"N": {"smooth": 7, "range": [5000, 10000]}}, {"N": 10000}))
    smooth = [n for n in range(1, 10001) if set(factors(n)) <= {2, 3, 5, 7}]
    members = {"aligned": lambda n: n % 64 == 0, "odd": lambda n: n % 2 == 1}
    for name, member in members.items():
        for drawn in draws(kernel, name):
            assert drawn["N"] in smooth
            assert member(drawn["N"])
    # from 7500 up the odd 7-smooth numbers are 7875, 8505, 8575, 9261 and 9375; 7203 is nearest to 7500
    assert {d["N"] for d in draws(kernel, "odd")} <= {7203, 7875, 8505, 8575, 9261, 9375}


def factors(number: int) -> list[int]:
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


def test_a_scaled_rung_keeps_the_form(write_kernel: Writer) -> None:
    fuzzed = {"N": {"smooth": 2, "range": [64, 2**20]}, "M": {"derive": "2 * N"}, "K": {"set": [3, 500, 900]}}
    arrays = {"arrays": {"x": "(N,)", "y": "(M,)", "z": "(K,)", "out": "(N,)"}}
    kernel = write_kernel(sized(fuzzed, {"N": 2**20, "M": 2**21, "K": 900}, init=arrays))
    rung = sizing.rung(kernel, Sizes("laptop", 2**20))
    assert rung["N"] & (rung["N"] - 1) == 0
    assert rung["M"] == 2 * rung["N"]
    assert rung["K"] == 3
    assert 2**18 < kernel.input_bytes(rung) <= 2**20
    for drawn in draws(kernel, "odd", rung):
        assert drawn["M"] == 2 * drawn["N"]
        assert drawn["K"] == 3


def test_intervals_draw_their_upper_half(write_kernel: Writer) -> None:
    kernel = write_kernel(sized({"N": [1000, 2000]}, {"N": 2000}))
    sizes = [d["N"] for d in draws(kernel, "odd")]
    assert all(1500 <= n <= 2000 and n % 2 == 1 for n in sizes)
    assert max(sizes) - min(sizes) > 250
    half = [d["N"] for d in draws(kernel, "odd", {"N": 1000})]
    assert all(750 <= n <= 1000 for n in half)


def test_listed_sizes_draw_from_their_upper_half_and_their_class(write_kernel: Writer) -> None:
    kernel = write_kernel(sized({"N": {"set": [10, 20, 128, 129, 256, 1001]}}, {"N": 1001}))
    assert {d["N"] for d in draws(kernel, "odd")} == {129, 1001}
    assert {d["N"] for d in draws(kernel, "aligned")} == {256}
    assert {d["N"] for d in draws(kernel, "even")} == {129, 256, 1001}  # none belongs to the class


def test_derived_and_constructed_sizes(write_kernel: Writer) -> None:
    fuzzed = {"N": {"construct": "16 * gen + 1", "gen": [1, 50]}, "M": {"derive": "N * K"}, "K": [2, 4]}
    kernel = write_kernel(sized(fuzzed, {"N": 801, "M": 3204, "K": 4}))
    for drawn in draws(kernel, "aligned"):
        assert drawn["N"] % 16 == 1
        assert 25 * 16 < drawn["N"] <= 801
        assert drawn["M"] == drawn["N"] * drawn["K"]


def test_sizes_derived_from_one_another_are_refused(write_kernel: Writer) -> None:
    fuzzed = {"N": {"derive": "M + 1"}, "M": {"derive": "N - 1"}}
    kernel = write_kernel(sized(fuzzed, {"N": 1000, "M": 999}))
    with pytest.raises(UserError, match="sizes M, N are derived from one another"):
        draws(kernel, "odd")


def test_constraints_hold_for_every_draw(write_kernel: Writer) -> None:
    kernel = write_kernel({**sized({"N": [8, 64000]}, {"N": 64000}), "constraints": ["N % 8 == 0"]})
    for name in ("aligned", "odd8", "odd"):  # no odd size is a multiple of 8: the class gives way
        assert all(d["N"] % 8 == 0 for d in draws(kernel, name))
    sizes = [sizing.correctness_sizes(kernel, seed)["N"] for seed in range(40)]
    assert all(n % 8 == 0 and 8 <= n <= 64000 for n in sizes)
    assert sum(n < 715 for n in sizes) > 8  # 715 is the geometric middle
    assert sizing.correctness_sizes(kernel, 3) == sizing.correctness_sizes(kernel, 3)


def test_constraints_no_draw_satisfies(write_kernel: Writer) -> None:
    kernel = write_kernel({**sized({"N": {"set": [9, 10]}}, {"N": 64}), "constraints": ["N == 64 or N < 8"]})
    with pytest.raises(UserError, match="no draw of 64 satisfies 'N == 64 or N < 8'; widen preset fuzzed"):
        sizing.correctness_sizes(kernel, 0)
    with pytest.raises(UserError, match="satisfy 'N == 64 or N < 8'"):
        draws(kernel, "odd")


def test_edge_sizes_stop_at_the_declared_maximum(write_kernel: Writer) -> None:
    kernel = write_kernel(sized({"N": [2, 4], "M": {"derive": "N + 1"}}, {"N": 4, "M": 5}))
    assert [sizing.edge_sizes(kernel, edge) for edge in sizing.EDGES] == [
        {"N": 1, "M": 2},
        {"N": 3, "M": 4},
        *({"N": 4, "M": 5} for _ in range(3)),
    ]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([4, 2], "[4, 2] is not an interval; write [lo, hi] with lo <= hi"),
        ([1, 2, 3], "[1, 2, 3] is not an interval"),
        ({"sett": [1]}, "unknown key 'sett'; did you mean 'set'?"),
        ({"set": []}, "set is []; write a list of sizes"),
        ({"set": [0]}, "0 is no size; sizes are whole numbers from 1"),
        ({"derive": "N +"}, "expression 'N +' cannot be read"),
        ({"derive": "Q + 1"}, "'Q' is not declared"),
        ({"smooth": 2, "range": [5, 7]}, "range [5, 7] holds no 2-smooth number"),
        ({"set": [1], "derive": "N"}, "keys ['derive', 'set'] do not go together"),
        ("many", "'many' is no size"),
    ],
)
def test_mistakes_in_forms(write_kernel: Writer, form: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        write_kernel(sized({"N": form}, {"N": 64}))
    assert message in str(caught.value)
    assert "fuzzed.N" in str(caught.value)


def test_a_fuzzed_preset_gives_every_symbol(write_kernel: Writer) -> None:
    with pytest.raises(UserError, match="preset fuzzed must give the same symbols as XL: M, N"):
        write_kernel(sized({"N": 3}, {"N": 64, "M": 3}))
    with pytest.raises(UserError, match="unknown key 'fuzzed'; it is a preset"):
        write_kernel({"fuzzed": {"N": 3}})
