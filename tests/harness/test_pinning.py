"""One timed thread per physical core, whatever the affinity mask looks like."""

from pathlib import Path

import pytest

from hpcagent_bench.harness import pinning


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
