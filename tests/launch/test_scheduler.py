"""What squeue, sacct and /proc say, and the state of a node job that follows from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from experiments import scheduler
from experiments.inflight import STALE_S, JobState, Signs, decide
from hpcagent_bench.errors import UserError

MANUAL = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PENDING",
    "PREEMPTED",
    "RUNNING",
    "SUSPENDED",
    "TIMEOUT",
    "COMPLETING",
    "CONFIGURING",
    "EXPEDITING",
    "LAUNCH_FAILED",
    "POWER_UP_NODE",
    "RECONFIG_FAIL",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RESV_DEL_HOLD",
    "REVOKED",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "UPDATE_DB",
]


def told(answers: dict[str, str | None]) -> scheduler.Runner:
    def runner(argv: Sequence[str]) -> str | None:
        return answers.get(argv[0])

    return runner


def test_every_state_of_the_manual_is_in_one_class() -> None:
    lists = [scheduler.WAITING, scheduler.RUNNING, scheduler.ENDED, scheduler.BY_SYSTEM]
    assert sorted(state for states in lists for state in states) == sorted(MANUAL)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("CANCELLED by 1000", "ended"),
        ("TIMEOUT+", "ended"),
        ("SUSPENDED", "running"),
        ("WIBBLE", "unknown"),
        ("", "unknown"),
    ],
)
def test_printed_states(state: str, expected: str) -> None:
    assert scheduler.classify(state) == expected


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("12", ["12"]),
        ("12_3", ["12_3"]),
        ("12_[1-3]", ["12_1", "12_2", "12_3"]),
        ("12_[0-4:2,9%4]", ["12_0", "12_2", "12_4", "12_9"]),
        ("12_[1,3,...]", ["12_1", "12_3"]),
    ],
)
def test_compact_ids(text: str, ids: list[str]) -> None:
    assert scheduler.expand_ids(text) == ids


def test_squeue_is_believed_before_accounting() -> None:
    runner = told(
        {"squeue": "7_0|PENDING\n7_1|RUNNING\n8|RUNNING\n", "sacct": "7_1|COMPLETED\n7_2|TIMEOUT\n"}
    )
    view = scheduler.slurm_view(["7_0", "7_1", "7_2", "7_3"], runner)
    assert view.states == {"7_0": "PENDING", "7_1": "RUNNING", "7_2": "TIMEOUT"}
    assert view.answered
    assert view.state_class("7_3") is None


def test_a_silent_squeue_is_remembered() -> None:
    assert not scheduler.slurm_view(["7"], told({})).answered


def test_many_ids_are_asked_in_portions() -> None:
    asked: list[Sequence[str]] = []

    def runner(argv: Sequence[str]) -> str | None:
        asked.append(argv)
        return ""

    scheduler.slurm_view([str(n) for n in range(5000)], runner)
    assert [argv[0] for argv in asked].count("squeue") == 1
    assert max(len(argv[argv.index("-j") + 1].split(",")) for argv in asked[1:]) == scheduler.PORTION


def test_a_submission_is_found_by_its_name() -> None:
    assert scheduler.find_by_name("n", told({"squeue": "41\n"})) == "41"
    assert scheduler.find_by_name("n", told({"squeue": "", "sacct": "42_[0-3]\n"})) == "42"
    assert scheduler.find_by_name("n", told({"squeue": "", "sacct": ""})) is None
    with pytest.raises(UserError, match="squeue does not answer"):
        scheduler.find_by_name("n", told({}))


def test_the_site_says_how_large_an_array_may_be() -> None:
    assert scheduler.max_array_size(1001, told({"scontrol": "A = 1\nMaxArraySize            = 25\n"})) == 25
    assert scheduler.max_array_size(1001, told({})) == 1001


def test_a_process_is_known_by_its_start_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = scheduler.this_process(child.pid)
    assert process.alive()
    assert not scheduler.Process(process.pid, process.host, process.started + 1).alive()
    assert scheduler.Process(process.pid, "elsewhere", process.started).alive() is None
    child.communicate(b"\n")
    assert not process.alive()


GRACE = 300.0


@pytest.mark.parametrize(
    ("signs", "state"),
    [
        (Signs(ended=True, scheduler="running"), "ended"),
        (Signs(scheduler="waiting"), "queued"),
        (Signs(scheduler="running", heartbeat_age=3, phase="agents at work"), "running"),
        (Signs(scheduler="running"), "queued"),
        (Signs(scheduler="running", heartbeat_age=3, phase="queued"), "queued"),
        (Signs(scheduler="running", heartbeat_age=STALE_S + 1), "stalled"),
        (Signs(scheduler="ended"), "lost"),
        (Signs(scheduler="ended", heartbeat_age=3), "lost"),
        (Signs(scheduler="ended-by-system", heartbeat_age=3), "lost"),
        (Signs(scheduler="unknown", heartbeat_age=3, phase="x"), "running"),
        (Signs(scheduler=None, submitted_age=10), "unknown"),
        (Signs(scheduler=None, submitted_age=GRACE + 1), "lost"),
        (Signs(scheduler=None, submitted_age=9999, heartbeat_age=3, phase="x"), "running"),
        (Signs(scheduler=None, submitted_age=9999, heartbeat_age=100), "unknown"),
        (Signs(scheduler=None, submitted_age=9999, heartbeat_age=GRACE + 1), "lost"),
        (Signs(scheduler_answered=False, submitted_age=9999, heartbeat_age=9999), "unknown"),
        (Signs(process_alive=True), "queued"),
        (Signs(process_alive=True, heartbeat_age=3, phase="agents at work"), "running"),
        (Signs(process_alive=True, heartbeat_age=9999), "stalled"),
        (Signs(process_alive=False, heartbeat_age=3), "lost"),
    ],
)
def test_the_state_of_a_node_job(signs: Signs, state: JobState) -> None:
    assert decide(signs, GRACE)[0] == state
