"""Which references race, who leads, and when the loser is cut."""

from pathlib import Path

import pytest

from hpcagent_bench import config
from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import denominator

KERNEL = spec.load("tsvc_2_vtvtv")


def test_best_of_names_its_kinds_in_order() -> None:
    assert denominator.parse("best-of(numba,c)").kinds == ("numba", "c")
    assert denominator.parse("c").kinds == ("c",)


def test_unknown_reference_is_refused_with_the_key() -> None:
    with pytest.raises(UserError, match=r"measurement.denominator.x=best-of\(numba,fortran\).*fortran"):
        denominator.parse("best-of(numba,fortran)", "measurement.denominator.x")


@pytest.mark.parametrize("name", [n for n in config.DENOMINATORS if n not in ("torch-autotune", "vendored")])
def test_configured_denominator_is_one_this_judge_times(name: str) -> None:
    settings = config.Measurement()
    settings.denominator.loop_level_reasoning = name
    chosen = denominator.for_kernel(KERNEL, settings)
    assert chosen.name == name
    assert denominator.credited(name, KERNEL, settings)
    assert not denominator.credited("something else", KERNEL, settings)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch-autotune", "no PyTorch references to time"),
        ("vendored", "kernel tsvc_2_vtvtv ships no baseline of its own"),
        ("best-of(c,c)", "names a reference twice"),
        ("best-of(c)x", r"no reference 'best-of\(c\)x'"),
        ("", "no reference ''"),
    ],
)
def test_denominator_that_cannot_be_timed_is_refused(name: str, said: str) -> None:
    settings = config.Measurement()
    settings.denominator.loop_level_reasoning = name
    with pytest.raises(UserError, match=f"measurement.denominator.loop_level_reasoning=.*{said}"):
        denominator.for_kernel(KERNEL, settings)


def test_table_of_leaders_says_who_leads_where_this_judge_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "baseline_leaders.yaml"
    table.write_text("k: {XL: c, laptop: numpy}\n")
    monkeypatch.setattr(denominator, "LEADERS_FILE", table)
    memory, kinds = denominator.RaceMemory(), ("numba", "c")
    assert memory.leader("k", "XL", "float64", kinds) == ("c", "table")
    assert memory.leader("k", "laptop", "float64", kinds) == ("numba", "default")  # numpy does not race
    assert memory.leader("other", "XL", "float64", kinds) == ("numba", "default")
    memory.winners[("k", "XL", "float64")] = "numba"
    assert memory.leader("k", "XL", "float64", kinds) == ("numba", "cache")
    table.write_text("- k\n")
    with pytest.raises(UserError, match="not a table of leaders"):
        denominator.load_leaders()
    table.unlink()
    assert denominator.load_leaders() == {}


def test_leader_is_numba_until_this_judge_knows_better() -> None:
    memory = denominator.RaceMemory()
    kinds = ("numba", "c")
    assert memory.leader("k", "laptop", "float64", kinds) == ("numba", "default")
    memory.winners[("k", "laptop", "float64")] = "c"
    assert memory.leader("k", "laptop", "float64", kinds) == ("c", "cache")
    assert memory.leader("k", "XL", "float64", kinds) == ("numba", "default")


@pytest.mark.parametrize(
    ("leader_ns", "budget_ns"),
    [([100], 1_000_000_000), ([400_000_000, 900_000_000], 1_800_000_000), ([], None)],
    ids=["floor of a second", "twice the slowest rep", "leader not timed yet"],
)
def test_cut_budget(leader_ns: list[int], budget_ns: int | None) -> None:
    assert denominator.cut_budget_ns(leader_ns, config.Measurement()) == budget_ns


def test_complete_race_cuts_nobody() -> None:
    settings = config.Measurement(baseline_race="complete")
    assert denominator.cut_budget_ns([5_000_000_000], settings) is None


def test_fastest_is_the_smallest_median() -> None:
    times = {"c": [5, 1, 9], "numba": [4, 4, 4]}
    assert denominator.fastest(times, ("c", "numba")) == "numba"
    assert denominator.fastest({}, ("c",)) is None
