"""An installed wheel works without a checkout: packages, configuration, native sources, kernels lie in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hpcagent_bench import paths

FILES = {".py", ".yaml", ".c", ".h", ".sql", ".txt", ".md", ".typed"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=paths.project_root(), check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def call(site: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, *argv], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def shipped(root: Path) -> set[str]:
    found = (path for path in root.rglob("*") if path.suffix in FILES and "__pycache__" not in path.parts)
    return {str(path.relative_to(root)) for path in found}


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("hpcagent_bench", "hpcagent_bench"),
        ("experiments", "experiments"),
        ("slurm", "slurm"),
        ("agent/hpcagent_agent", "hpcagent_agent"),
        ("conf", "hpcagent_bench/conf"),
    ],
)
def test_everything_of_a_checkout_is_inside(installed: Path, here: str, there: str) -> None:
    wanted = shipped(paths.project_root() / here)
    assert wanted
    assert wanted <= shipped(installed / there)


def test_an_installation_lists_studies_plans_and_helps(installed: Path, tmp_path: Path) -> None:
    listed = call(installed, tmp_path, "-m", "experiments.launch")
    assert "+study=quickstart" in listed.stdout
    plan = call(installed, tmp_path, "-m", "experiments.launch", "--json", "+study=quickstart", "action=plan")
    assert '"owed"' in plan.stdout
    helped = call(installed, tmp_path, "-m", "hpcagent_bench.cli", "--help")
    assert "devcluster" in helped.stdout
    assert list(tmp_path.rglob("*.db")) == []


def test_a_snapshot_of_an_installation_is_laid_out_as_a_checkout(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    code = "import sys; from pathlib import Path; from experiments import runtree; "
    code += "print(runtree.snapshot(runtree.RunRoot(Path(sys.argv[1]))))"
    made = Path(call(installed, tmp_path, "-c", code, str(tmp_path / "run")).stdout.strip())
    assert {path.name for path in made.iterdir()} == {"hpcagent_bench", "experiments", "slurm", "agent"}
    told = "import hpcagent_bench.paths as p, hpcagent_agent.tools.client; print(p.conf_root())"
    env = {**os.environ, "PYTHONPATH": f"{made}:{made}/agent", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", told], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(made / "hpcagent_bench" / "conf")
