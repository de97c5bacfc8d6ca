"""One timed thread per physical core, whatever the affinity mask looks like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcagent_bench import config
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under, pinning
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Four physical cores: 0 and 4, 1 and 5, ... are threads of one, as on most servers."""
    for core in range(8):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("granted", "timed"),
    [((0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 2, 3)), ((4, 5), (4, 5)), ((0, 4, 1), (0, 1)), ((6, 2, 3), (6, 3))],
)
def test_second_threads_of_a_core_are_left_out(
    system: Path, granted: tuple[int, ...], timed: tuple[int, ...]
) -> None:
    assert pinning.one_per_physical_core(granted, system) == timed


def test_ranges_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "cpu0" / "topology"
    folder.mkdir(parents=True)
    (folder / "thread_siblings_list").write_text("0-1,8\n")
    assert pinning.siblings(0, tmp_path) == {0, 1, 8}


def test_without_topology_every_core_counts(tmp_path: Path) -> None:
    assert pinning.one_per_physical_core((0, 1), tmp_path) == (0, 1)


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_list_form_is_read_back(cores: frozenset[int]) -> None:
    assert pinning._numbers(pinning.as_list(cores)) == sorted(cores)


def test_list_form_of_a_mask_with_gaps() -> None:
    assert pinning.as_list({0, 1, 8, 9, 11}) == "0-1,8-9,11"


@pytest.mark.parametrize(
    ("cores", "before", "now", "said"),
    [
        ((0, 8), {0, 1, 8, 9}, {0, 1, 8, 9}, ""),
        ((0, 8), {0, 1, 8, 9}, {0, 1, 9}, "timed core 8 is no longer granted: granted are 0-1,9"),
        ((0,), {0, 1}, {0}, "the granted cores changed from 0-1 to 0 since the judge started"),
        ((0,), {0}, set(range(64)), "the granted cores changed from 0 to 0-63 since the judge started"),
    ],
)
def test_change_of_the_mask_is_a_surprise(
    cores: tuple[int, ...], before: set[int], now: set[int], said: str
) -> None:
    assert pinning.surprise(cores, frozenset(before), frozenset(now)) == said


def test_grade_after_the_mask_changed_is_the_judges_fault() -> None:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    mask = os.sched_getaffinity(0)
    context = GradingContext(settings, config.Sizes("tiny", 2**16), (min(mask),), GradingSeeds(1, 2, 3))
    context.granted = frozenset({*mask, 1023})
    verdict = grade_under.submit_grade(context, Submission(spec.load("tsvc_2_vtvtv"), "c", "no C"))
    context.close()
    assert (verdict.status, verdict.fault) == ("score_error", True)
    assert verdict.reason.startswith("infra: cores: the granted cores changed from")


def test_process_that_may_run_elsewhere_has_strayed() -> None:
    mask = sorted(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{mask[-1]}}}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert pinning.strayed(child.pid, (mask[-1],)) == frozenset()
        assert pinning.strayed(child.pid, (mask[-1] + 1,)) == {mask[-1]}
        child.kill()
    assert pinning.strayed(child.pid, ()) == frozenset()
