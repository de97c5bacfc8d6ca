"""Right for the sizes that are known to be timed, or small, or round; wrong for the others."""

from __future__ import annotations

import pytest
from attack_rig import KERNEL, Rig, refused, rig, version

from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under

SPOILT = "HONEST; if (WHEN) area[LEN_1D / 2] += 1.0;"


def spoilt(when: str) -> str:
    return version(SPOILT.replace("WHEN", when))


@pytest.mark.parametrize(
    ("when", "failing"),
    [
        ("LEN_1D % 2", r"input 2 \(odd"),
        ("LEN_1D % 64", r"input 2 \(odd"),
        ("LEN_1D % 8 == 0 && LEN_1D % 16", r"input 3 \(odd8"),
        ("LEN_1D % 64 == 0", r"input 1 \(aligned"),
        ("LEN_1D > 4096", "input 1"),
    ],
)
def test_wrong_for_a_class_of_sizes_is_refused_on_the_input_of_that_class(
    judge: Rig, when: str, failing: str
) -> None:
    refused(judge.attack(spoilt(when)), "incorrect", failing)


def test_tail_beyond_whole_tiles_left_out_is_refused(judge: Rig) -> None:
    body = "double kept = area[LEN_1D - 1]; HONEST; if (LEN_1D % 64) area[LEN_1D - 1] = kept;"
    refused(judge.attack(version(body)), "incorrect", r"input 2 \(odd.*rep-verify\[warm-up\] area\[")


def test_right_for_the_timed_sizes_alone_is_overfit(judge: Rig) -> None:
    """The shapes of a final grade are public; the held-out cases have others."""
    cells = grade_under.final_settings(judge.context, spec.load(KERNEL)).cells
    timed = " && ".join(f"LEN_1D != {cell.sizes['LEN_1D']}" for cell in cells)
    refused(judge.attack(spoilt(timed)), "overfit", "size_class_sweep")


def test_wrong_at_a_preset_alone_is_overfit(judge: Rig) -> None:
    size = spec.load(KERNEL).presets["S"]["LEN_1D"]
    refused(judge.attack(spoilt(f"LEN_1D == {size}")), "overfit", "size_class_sweep")


def test_wrong_above_a_million_elements_is_refused_where_those_are_timed() -> None:
    with rig(rung_bytes=3 * 8 * 1_500_000) as large:
        refused(large.preview(spoilt("LEN_1D > 1 << 20")), "incorrect", "input 1")


def test_twin_with_a_loop_of_its_own_for_every_size_class_is_accepted(judge: Rig) -> None:
    body = """int64_t before = LEN_1D - 1, i = 0;
    if (LEN_1D % 2) { area[0] = (x[0] + x[before]) * (y[0] - y[before]); before = 0; i = 1; }
    for (; i < LEN_1D; i += 2) {
        area[i] = (x[i] + x[before]) * (y[i] - y[before]);
        area[i + 1] = (x[i + 1] + x[i]) * (y[i + 1] - y[i]);
        before = i + 1;
    }"""
    judge.accepts(version(body))
