"""The command itself, on this machine: real jobs, a real kill, and the same line again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest
from launching import KERNELS, LINE, launch, processes_below, the_run, until


@pytest.fixture(autouse=True)
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.getbasetemp() / "launch-cache"))
    monkeypatch.chdir(tmp_path)


def test_without_a_study_it_says_which_exist() -> None:
    done = launch()
    assert done.returncode == 0
    assert "python -m experiments.launch +study=quickstart" in done.stdout
    assert "quickstart" in json.loads(launch("--json").stdout)["studies"]


def test_planning_touches_nothing(tmp_path: Path) -> None:
    done = launch("+study=quickstart", "action=plan", "--json")
    plan = json.loads(done.stdout)
    assert (len(plan["owed"]), len(plan["arrays"]), plan["run"]) == (16, 2, None)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_is_one_line_and_two() -> None:
    done = launch("+study=quickstart", "sizes=tny")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "did you mean 'tiny'?" in done.stderr


def test_killed_in_the_middle_the_same_line_runs_exactly_the_rest() -> None:
    assert launch(*LINE, "follow=false").returncode == 0
    run = the_run()
    again = launch(*LINE, "follow=false")
    assert "nothing is owed: 2 episodes are in flight" in again.stdout
    pointer = until(lambda: next(run.glob("waves/*.job.json"), None))
    until(lambda: [*run.glob("100001/agents/*/*/.submission-spent"), *run.glob("100001/end.json")])
    assert not (run / "100001" / "end.json").exists(), (run / "100001" / "end.json").read_text()
    os.kill(json.loads(pointer.read_text())["pid"], signal.SIGKILL)
    until(lambda: not processes_below(run / "100001"))

    plan = json.loads(launch(*LINE, "action=plan", "--json").stdout)
    graded = {w["kernel"] for w in plan["delivered"]}
    owed = {w["kernel"]: w["class"] for w in plan["owed"]}
    assert graded | set(owed) == set(KERNELS)
    assert not graded & set(owed)
    assert set(owed.values()) <= {"infra"}

    final = launch(*LINE, "--json")
    assert final.returncode == 0, final.stderr
    with sqlite3.connect(run / "results.db") as conn:
        rows = conn.execute(
            "SELECT g.kernel, count(*) FROM grades g JOIN episodes e ON e.id = g.episode_id "
            "WHERE g.kind = 'final' AND NOT coalesce(e.cancelled, 0) GROUP BY g.kernel"
        ).fetchall()
    assert dict(rows) == dict.fromkeys(KERNELS, 1)
    assert len(list(run.glob("waves/[0-9].json"))) == (2 if owed else 1)
