"""Run roots, their lock, their frozen code, and waves whose launcher died."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments import inflight, progress, runtree, scheduler, submit
from experiments.compose import compose
from experiments.runtree import RunRoot
from hpcagent_bench.errors import UserError


def made(runs: Path, identity: str) -> RunRoot:
    root = runtree.create(runs, "s")
    plan = {"identity": identity, "designed": [["s-c-h", "k", 1], ["s-c-h", "l", 1]], "setups": {"s-c-h": {}}}
    (root.path / runtree.PLAN).write_text(json.dumps(plan))
    return root


def test_roots_of_one_second_are_two_folders(tmp_path: Path) -> None:
    paths = [made(tmp_path, str(n)).path for n in range(6)]
    assert len(set(paths)) == 6
    assert [r.path for r in runtree.all_roots(tmp_path)] == paths


def test_a_study_is_found_by_its_identity(tmp_path: Path) -> None:
    first, second, other = made(tmp_path, "a"), made(tmp_path, "a"), made(tmp_path, "b")
    assert runtree.find(tmp_path, "a") == second != first
    assert runtree.find(tmp_path, "b") == other
    assert runtree.find(tmp_path, "c") is None
    assert runtree.find(tmp_path / "none", "a") is None


def test_a_broken_plan_hides_nothing_else(tmp_path: Path) -> None:
    good, bad = made(tmp_path, "a"), made(tmp_path, "a")
    (bad.path / runtree.PLAN).write_text("{")
    assert runtree.find(tmp_path, "a") == good


def test_seeds_are_secret_and_drawn_once_a_root(tmp_path: Path) -> None:
    roots = [made(tmp_path, "a"), made(tmp_path, "a")]
    seeds = [json.loads(r.seeds.read_text()) for r in roots]
    assert stat.S_IMODE(roots[0].seeds.stat().st_mode) == 0o600
    assert all(set(s) == {"first", "second", "third"} for s in seeds)
    assert seeds[0] != seeds[1]


def test_folders_slurm_would_misread_or_nobody_can_write_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="%"):
        runtree.create(tmp_path / "a%j", "s")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="runs="):
        runtree.create(tmp_path / "file" / "runs", "s")


def test_two_launchers_cannot_launch_one_study_at_once(tmp_path: Path) -> None:
    with runtree.launch_lock(tmp_path, "s"):
        with pytest.raises(UserError, match="is launching s here"), runtree.launch_lock(tmp_path, "s"):
            pass
        with runtree.launch_lock(tmp_path, "other"):
            pass
    with runtree.launch_lock(tmp_path, "s"):
        pass


def test_the_snapshot_outlives_edits(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "conf").mkdir(parents=True)
    (source / "conf" / "a.yaml").write_text("a: 1")
    (source / "other").mkdir()
    root = made(tmp_path / "runs", "a")
    first = runtree.snapshot(root, source)
    (source / "conf" / "a.yaml").write_text("a: 2")
    second = runtree.snapshot(root, source)
    (source / "conf" / "a.yaml").write_text("a: 1")
    assert (first / "conf" / "a.yaml").read_text() == "a: 1"
    assert second != first == runtree.snapshot(root, source)
    assert not (first / "other").exists()
    assert sorted(p.name for p in (root.path / "code").iterdir()) == sorted([first.name, second.name])


def wave(
    root: RunRoot, executor: str, state: str = "submitting", age: float = 0.0, **job: Any
) -> dict[str, Any]:
    jobs = [
        {"stem": "1-s-c-h-1", "setup": "s-c-h", "task": 1, "work": [["k", 1]], "id": None, **job},
        {"stem": "1-s-c-h-2", "setup": "s-c-h", "task": 2, "work": [["l", 1]], "id": None, **job},
    ]
    array = {
        "setup": "s-c-h",
        "token": "t",
        "name": "s.w1.t",
        "state": state,
        "stems": [j["stem"] for j in jobs],
    }
    record = {"wave": 1, "created": time.time() - age, "executor": executor, "arrays": [array], "jobs": jobs}
    root.save_wave(record)
    (root.waves / "1.yaml").write_text(compose(["+study=quickstart"]).text)
    return record


def test_an_array_is_found_again_after_its_launcher_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path, "a")
    wave(root, "slurm")
    monkeypatch.setattr(scheduler, "find_by_name", lambda name: "41" if name == "s.w1.t" else None)
    submit.recover(root)
    record = root.wave_records()[0]
    assert [j["id"] for j in record["jobs"]] == ["41_0", "41_1"]
    assert record["arrays"][0]["state"] == "submitted"


def test_an_array_never_submitted_is_owed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path, "a")
    wave(root, "slurm")
    monkeypatch.setattr(scheduler, "find_by_name", lambda name: None)
    submit.recover(root)
    views = inflight.survey(root, compose(["+study=quickstart"]).root.cluster, lambda argv: "")
    assert [(v.state, v.refused) for v in views] == [("lost", True)] * 2


def test_young_local_jobs_are_waited_for(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    wave(root, "local")
    assert [job.state for job in progress.survey(root)] == ["unknown", "unknown"]
    wave(root, "local", age=submit.LOCAL_START_S + 1)
    assert [job.state for job in progress.survey(root)] == ["lost", "lost"]


def test_a_live_local_process_is_in_flight_and_a_dead_one_is_owed(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = vars(scheduler.this_process(child.pid))
    wave(root, "local", "submitted", age=9999, id=str(child.pid), process=process)
    state = progress.take(root)
    assert (len(state.live), len(state.plan.in_flight), len(state.plan.owed)) == (2, 2, 0)
    child.communicate(b"\n")
    state = progress.take(root)
    assert [item.owed_class for item in state.plan.owed] == ["infra", "infra"]
    assert state.setups()[0].lost == 2


def test_an_ended_job_is_not_lost(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    wave(root, "local", "submitted", age=9999)
    for number, stem in ((100001, "1-s-c-h-1"), (100002, "1-s-c-h-2")):
        (root.path / str(number)).mkdir()
        (root.path / str(number) / "end.json").write_text('{"reason": "done", "rc": 0}')
        (root.waves / f"{stem}.job.json").write_text(json.dumps({"job": number}))
    assert [job.state for job in progress.survey(root)] == ["ended", "ended"]
