"""A task cancelled, and a node lost, in the middle of a grade; on the real Slurm."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hpcagent_agent.driver.settings import Settings
from launching import (
    CANCELLED,
    KERNELS,
    LINE,
    UNTOUCHED,
    check_records,
    family,
    gone,
    hold_grade,
    launch,
    owed_of,
    pointers,
    the_run,
    the_same_line_runs,
    until,
)

from experiments import runtree
from experiments.compose import compose
from experiments.inflight import read_json
from hpcagent_bench.cluster import serve
from slurm.devcluster import Status

pytestmark = pytest.mark.slurm
WORDS = ("cluster=devcluster", "partition.problems_per_job=1")
OVER = {"CANCELLED", "COMPLETED", "NODE_FAIL"}


class Held(NamedTuple):
    """A task stopped in the middle of grading ``kernel``."""

    run: Path
    job: Path
    kernel: str
    task: str
    other: str


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.getbasetemp() / "launch-cache"))


def start_and_hold() -> Held:
    """An array of two tasks, one of which stands still in the middle of a grade."""
    done = launch(*LINE, *WORDS, "follow=false")
    assert done.returncode == 0, done.stderr
    run = the_run()
    job, kernel = hold_grade(run)
    (wave,) = runtree.RunRoot(run).wave_records()
    tasks = {read_json(run / "waves" / f"{j['stem']}.job.json").get("job"): j["id"] for j in wave["jobs"]}
    (other,) = (j["id"] for j in wave["jobs"] if j["id"] != tasks[int(job.name)])
    return Held(run, job, kernel, tasks[int(job.name)], other)


def told(task: str, field: str) -> str:
    """What accounting says of a task, the first word."""
    argv = ["sacct", "-X", "-n", "-P", "-j", task, "-o", field]
    return (subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split() or [""])[0]


def test_a_task_cancelled_in_mid_grade(devcluster: Status) -> None:
    held = start_and_hold()
    processes = family(pointers(held.run)[held.job])
    subprocess.run(["scancel", held.task], check=True)
    until(lambda: {told(held.task, "State"), told(held.other, "State")} <= OVER)
    assert [p for p in processes if p.alive()] == []
    assert read_json(held.job / "end.json")["reason"] == "stopped by SIGTERM"
    assert owed_of(held.run) == {held.kernel: CANCELLED}
    assert check_records(held.run) == dict.fromkeys(set(KERNELS) - {held.kernel}, 1)
    the_same_line_runs({held.kernel}, held.run, *WORDS)


def test_a_node_lost_in_mid_grade(devcluster: Status) -> None:
    held = start_and_hold()
    processes = family(pointers(held.run)[held.job])
    until(lambda: told(held.task, "NodeList") != "")  # accounting hears of a job late
    node = told(held.task, "NodeList")
    set_node(node, "State=DOWN", "Reason=test")
    try:
        until(lambda: told(held.task, "State") == "NODE_FAIL" and gone(processes, held.run))
    finally:
        set_node(node, "State=RESUME")
    until(lambda: told(held.other, "State") in OVER)
    owed = owed_of(held.run)
    assert owed[held.kernel] in (CANCELLED, UNTOUCHED)
    assert check_records(held.run) == dict.fromkeys(set(KERNELS) - set(owed), 1)
    the_same_line_runs(set(owed), held.run, *WORDS)


def set_node(node: str, *words: str) -> None:
    subprocess.run(["scontrol", "update", f"NodeName={node}", *words], check=True)


def test_a_cancelled_job_has_time_to_end_in_order(devcluster: Status) -> None:
    (kill_wait,) = re.findall(r"^KillWait=(\d+)$", devcluster.slurm_conf.read_text(), re.MULTILINE)
    grace_s = compose(["+study=quickstart", *WORDS]).root.cluster.stop_grace_s
    assert Settings.model_fields["kill_grace_s"].default < grace_s
    assert grace_s + serve.GRACE_S < int(kill_wait)
