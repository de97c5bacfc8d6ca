"""The judge, the driver or the whole job killed in the middle of a grade, on real runs."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest
from launching import (
    KERNELS,
    LINE,
    check_records,
    driver_of,
    family,
    hold_grade,
    judge_of,
    kill,
    launch,
    owed_of,
    pointers,
    processes_below,
    the_run,
    until,
)

from experiments.inflight import read_json
from experiments.scheduler import Process, this_process
from hpcagent_bench import results_db

UNTOUCHED = "infra: a job was given it and left no episode"
CANCELLED = "infra: cancelled: the job ended under the agent"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.getbasetemp() / "launch-cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("victim", "end", "why"),
    [
        ("judge", "the judge died with rc -9", CANCELLED),
        ("driver", "the driver died with rc -9", UNTOUCHED),
        ("job", None, UNTOUCHED),
    ],
    ids=["judge", "driver", "job"],
)
def test_killed_in_mid_grade(victim: str, end: str | None, why: str) -> None:
    assert launch(*LINE, "follow=false").returncode == 0
    run = the_run()
    job, kernel = hold_grade(run)
    processes = family(pointers(run)[job])
    judge = this_process(judge_of(job))
    kill({"judge": [judge], "driver": [this_process(driver_of(job))], "job": processes}[victim])
    if judge.alive():
        os.kill(judge.pid, signal.SIGCONT)
    until(lambda: gone(processes, run))
    assert read_json(job / "end.json").get("reason") == end

    owed = owed_of(run)
    lost = {kernel: why, **dict.fromkeys(KERNELS[KERNELS.index(kernel) + 1 :], UNTOUCHED)}
    if victim == "driver" and kernel not in owed:
        del lost[kernel]  # the judge may finish a grade whose client is gone, and then it counts
    assert owed == lost
    assert check_records(run) == dict.fromkeys(set(KERNELS) - set(owed), 1)
    the_same_line_runs(set(owed), run)


def the_same_line_runs(owed: set[str], run: Path) -> None:
    """Launch again: exactly what was owed runs, everything is delivered, and grades name their code."""
    again = launch(*LINE, "--json")
    assert again.returncode == 0, again.stderr
    assert check_records(run) == dict.fromkeys(KERNELS, 1)
    waves = [json.loads(path.read_text()) for path in sorted(run.glob("waves/[0-9].json"))]
    carried = [{kernel for job in wave["jobs"] for kernel, _ in job["work"]} for wave in waves]
    assert carried == [wave for wave in (set(KERNELS), owed) if wave]
    with closing(results_db.open_ro(run / "results.db")) as conn:
        commits = {row[0] for row in conn.execute("SELECT commit_sha FROM grades")}
    assert commits <= {wave["commit"] for wave in waves}


def gone(processes: list[Process], run: Path) -> bool:
    """Whether nothing of a job is left: not what it started, nor anything that names its run."""
    return not any(process.alive() for process in processes) and not processes_below(run)
