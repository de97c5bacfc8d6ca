"""Real runs hurt in the middle of a grade: the judge, the driver or all of the job killed, the disk full."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from launching import (
    CANCELLED,
    KERNELS,
    LINE,
    UNTOUCHED,
    check_records,
    driver_of,
    family,
    fill,
    gone,
    hold_grade,
    judge_of,
    kill,
    launch,
    owed_of,
    own_disk,
    pointers,
    the_run,
    the_same_line_runs,
    until,
)

from experiments.inflight import read_json
from experiments.scheduler import this_process


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


def test_a_disk_that_fills_up_in_mid_grade(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with own_disk(runs, megabytes=64):
        assert launch(*LINE, "follow=false").returncode == 0
        run = the_run()
        job, kernel = hold_grade(run)
        processes = family(pointers(run)[job])
        fill(runs / "filler-0")
        os.kill(judge_of(job), signal.SIGCONT)
        for number in itertools.count(1):  # a grade that ends gives back what it built, so more must follow
            if gone(processes, run):
                break
            fill(runs / f"filler-{number}")
            time.sleep(0.01)
        for filler in runs.glob("filler-*"):
            filler.unlink()
        owed = owed_of(run)
        assert set(owed) == set(KERNELS[KERNELS.index(kernel) :])
        assert {why.partition(":")[0] for why in owed.values()} == {"infra"}
        assert check_records(run) == dict.fromkeys(set(KERNELS) - set(owed), 1)
        the_same_line_runs(set(owed), run)
