"""Which references race, who leads, and when the loser is cut."""

import pytest

from hpcagent_bench import config
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import denominator


def test_best_of_names_its_kinds_in_order() -> None:
    assert denominator.parse("best-of(numba,c)").kinds == ("numba", "c")
    assert denominator.parse("c").kinds == ("c",)


def test_unknown_reference_is_refused_with_the_key() -> None:
    with pytest.raises(UserError, match=r"measurement.denominator.x=best-of\(numba,fortran\).*fortran"):
        denominator.parse("best-of(numba,fortran)", "measurement.denominator.x")


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
