"""Launching on the real Slurm: arrays, jobs in flight, cancelled jobs, a refused submission."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.scheduler import expand_ids
from slurm.devcluster import Status

pytestmark = pytest.mark.slurm

WORDS = [
    "+study=quickstart",
    "cluster=devcluster",
    "sizes=tiny",
    "setups=*-reference",
    "partition.problems_per_job=1",
]
KERNELS = ("ext_war_unit", "tsvc_2_s311")
Eventually = Callable[..., None]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.getbasetemp() / "launch-cache"))


def launch(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "experiments.launch", *WORDS, f"kernels={','.join(KERNELS)}", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False)


def plan(*words: str) -> dict[str, Any]:
    done = launch("action=plan", "--json", *words)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def submitted() -> list[str]:
    """Ids of all tasks of ours that accounting has ever seen."""
    argv = ["sacct", "-X", "-n", "-P", "-o", "JobID,JobName%80"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    lines = [line.split("|") for line in text.splitlines()]
    return [task for printed, name in lines if name.startswith("quickstart") for task in expand_ids(printed)]


def wave() -> dict[str, Any]:
    return dict(json.loads(next(Path("runs").glob("quickstart-*/waves/1.json")).read_text()))


def test_one_array_a_setup_and_nothing_twice(devcluster: Status, eventually: Eventually) -> None:
    before = len(submitted())
    first = launch("follow=false")
    assert first.returncode == 0, first.stderr
    record = wave()
    heads = {job["id"].split("_")[0] for job in record["jobs"]}
    assert [len(a["stems"]) for a in record["arrays"]] == [2]
    assert len(heads) == 1
    again = launch("follow=false")
    assert "nothing is owed: 2 episodes are in flight" in again.stdout
    eventually(lambda: len(submitted()) - before == 2, seconds=30)
    followed = launch("--json")
    assert followed.returncode == 0, followed.stderr
    assert json.loads(followed.stdout)["setups"][0]["graded"] == 2
    assert "everything is delivered" in launch("follow=false").stdout
    assert len(submitted()) - before == 2


def test_a_cancelled_array_is_owed_and_runs_again(devcluster: Status, eventually: Eventually) -> None:
    assert launch("follow=false").returncode == 0
    head = wave()["jobs"][0]["id"].split("_")[0]
    (run,) = Path("runs").glob("quickstart-*")
    eventually(lambda: bool(list(run.glob("waves/*.job.json"))), seconds=60)
    subprocess.run(["scancel", head], check=True)
    eventually(lambda: not plan()["in_flight"], seconds=90)
    now = plan()
    assert {w["kernel"] for w in [*now["owed"], *now["delivered"]]} == set(KERNELS)
    assert {w["class"] for w in now["owed"]} <= {"infra"}
    assert launch("--json").returncode == 0
    assert not plan()["owed"]


def test_what_slurm_refuses_is_told_with_the_key_to_change(devcluster: Status) -> None:
    done = launch("partition.partition=nowhere", "follow=false")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "partition.partition" in done.stderr
    assert {w["class"] for w in plan()["owed"]} == {"new"}
