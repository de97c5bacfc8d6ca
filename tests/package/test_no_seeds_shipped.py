"""Secret seeds stay on the judge's side: not in the repository, not in a package, not in a run's snapshot."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from experiments import runtree
from hpcagent_bench import paths
from hpcagent_bench.harness import seeds

PARTS = ("hpcagent_bench", "experiments", "slurm", "agent", "conf", "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, without version control, in which a judge has made its seeds."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        source = paths.project_root() / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    made = copy / seeds.SEEDS_FILE.relative_to(paths.project_root())
    made.parent.mkdir(exist_ok=True)
    seeds.new_seeds(made)
    return copy


def test_no_package_carries_them(checkout: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*argv, "-t", "wheel"], cwd=checkout, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("harness/seeds.py") for name in names)
    assert not [name for name in names if "secret_seeds" in name]


def test_no_snapshot_carries_them(checkout: Path, tmp_path: Path) -> None:
    skipped = runtree._SKIPPED(str(checkout), [seeds.SEEDS_FILE.name, "seeds.py"])
    assert skipped == {seeds.SEEDS_FILE.name}


def test_the_repository_does_not_track_them() -> None:
    if not (paths.project_root() / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=paths.project_root(), check=True, capture_output=True, text=True
    )
    assert not [name for name in listed.stdout.splitlines() if "secret_seeds" in name]
    ignored = ["git", "check-ignore", "-q", str(seeds.SEEDS_FILE)]
    assert subprocess.run(ignored, cwd=paths.project_root()).returncode == 0


def test_new_seeds_are_drawn_anew_and_private(tmp_path: Path) -> None:
    loaded = []
    for name in ("a.json", "b.json"):
        seeds.new_seeds(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
        loaded.append(seeds.load_seeds(tmp_path / name))
    drawn = {seed for s in loaded for seed in (s.first, s.second, s.third)}
    assert len(drawn) == 6
    assert min(drawn) > 2**40  # six draws of 63 bits: a smaller one comes once in a million runs
    assert not any(s.public for s in loaded)
    assert seeds.DEVELOPMENT_SEEDS.public
    assert json.loads((tmp_path / "a.json").read_text()).keys() == {"first", "second", "third"}
