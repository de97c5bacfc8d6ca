"""``hpcagent-bench calibrate`` as a person runs it: real grades of a real kernel, killed and gone on with."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpcagent_bench import cli, config, results_db
from hpcagent_bench.calibration import neighbours
from hpcagent_bench.calibration.store import Store
from hpcagent_bench.calibration.study import Goal, Study
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.seeds import GradingSeeds

KERNEL = "tsvc_2_vtvtv"
FACTS = {"node": "n1", "sizes": "tiny"}


def command(out: Path, pairs: int, *more: str) -> list[str]:
    options = ["--kernels", KERNEL, "--pairs", str(pairs), "--sizes", "tiny", "--reference", "c"]
    return [
        *(sys.executable, "-m", "hpcagent_bench.cli", "calibrate"),
        *(*options, "--out", str(out), "--json", *more),
    ]


def calibrate(out: Path, pairs: int, *more: str) -> tuple[dict[str, Any], str]:
    """Its JSON and what it said meanwhile."""
    done = subprocess.run(
        command(out, pairs, *more), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


def grades(out: Path) -> list[tuple[str, str]]:
    """(request id, stamp) of every recorded grade."""
    if not (out / "results.db").exists():
        return []
    try:
        conn = results_db.open_ro(out / "results.db")
    except UserError:  # not made whole yet
        return []
    try:
        rows = conn.execute("SELECT request_id, timing_reduction FROM grades ORDER BY id").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        conn.close()
    return [tuple(row) for row in rows]


def measured(out: Path) -> int:
    """Inputs of all recorded grades with all runs of both sides; on a very busy machine not every one."""
    conn = results_db.open_ro(out / "results.db")
    try:
        details = [json.loads(row[0]) for row in conn.execute("SELECT detail FROM grades")]
    finally:
        conn.close()
    pairs = [pair for detail in details for pair in detail["pairs"]]
    return sum(not pair["failed"] and len(pair["candidate"]) == len(pair["baseline"]) == 5 for pair in pairs)


def uncredited(out: Path) -> bool:
    """Whether every grade is an adhoc score without a credit, which answers nothing."""
    conn = results_db.open_ro(out / "results.db")
    try:
        rows = conn.execute(
            "SELECT DISTINCT g.credited_speedup, g.score_rule, g.kind, e.label FROM grades g "
            "JOIN episodes e ON e.id = g.episode_id"
        ).fetchall()
    finally:
        conn.close()
    return [tuple(row) for row in rows] == [(None, None, "score", results_db.ADHOC)]


def test_both_protocols_end_to_end_then_more_pairs(tmp_path: Path) -> None:
    out = tmp_path / "aa"
    first, said = calibrate(out, 4)
    assert "4 inputs of mw4x5 and mwp4x5" in said
    assert "about" in said  # an expected duration, before anything was measured
    assert [f["stamp"] for f in first["findings"]] == ["mw4x5-aa", "mwp4x5-aa"]
    assert all(f["inputs"] >= 4 for f in first["findings"])
    assert sum(f["inputs"] for f in first["findings"]) == measured(out)
    assert all(f["false"]["nominal"] == pytest.approx(38 / 252) for f in first["findings"])
    assert first["finished"]
    assert first["looks"] >= 1
    assert first["machine"]["sizes"] == "tiny"
    assert uncredited(out)
    held = grades(out)
    assert held[:2] == [(f"{s}/quiet/0/{KERNEL}", s) for s in ("mw4x5-aa", "mwp4x5-aa")]
    before = first["findings"][0]["inputs"]
    again, said = calibrate(out, before + 4, "--protocol", "mw4x5")
    assert f"{before} of {before + 4} inputs held already" in said
    assert [f["stamp"] for f in again["findings"]] == ["mw4x5-aa"]
    assert again["findings"][0]["inputs"] >= before + 4
    assert grades(out)[: len(held)] == held
    assert {stamp for _, stamp in grades(out)[len(held) :]} == {"mw4x5-aa"}


def test_beside_neighbours_every_protocol_is_measured_again(tmp_path: Path) -> None:
    found, _ = calibrate(tmp_path / "aa", 4, "--protocol", "mwp4x5", "--neighbours")
    assert [(f["condition"], f["inputs"] >= 4) for f in found["findings"]] == [
        ("quiet", True),
        ("busy", True),
    ]
    assert set(found["keeping"]) == {"quiet", "busy"}


def test_a_killed_study_goes_on_after_its_last_grade(tmp_path: Path) -> None:
    out = tmp_path / "aa"
    running = subprocess.Popen(
        command(out, 400, "--protocol", "mw4x5"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while len(grades(out)) < 2:
            assert running.poll() is None
            assert time.monotonic() < deadline, "no grade in two minutes"
            time.sleep(0.05)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    held, before = grades(out), measured(out)
    found, said = calibrate(out, before + 4, "--protocol", "mw4x5")
    assert f"{before} of {before + 4} inputs held already" in said
    after = grades(out)
    assert after[: len(held)] == held
    assert [key for key, _ in after] == [f"mw4x5-aa/quiet/{turn}/{KERNEL}" for turn in range(len(after))]
    assert found["findings"][0]["inputs"] == measured(out) >= before + 4


def test_an_interrupted_study_reports_what_it_has_and_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "aa"
    running = subprocess.Popen(
        command(out, 400, "--protocol", "mw4x5"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not grades(out):
        assert running.poll() is None
        assert time.monotonic() < deadline, "no grade in two minutes"
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    said, complaints = running.communicate(timeout=60)
    assert running.returncode == 130, complaints
    assert "the same command goes on" in complaints.splitlines()[-1]
    found = json.loads(said)
    assert not found["finished"]
    assert found["findings"][0]["inputs"] == measured(out)


def test_kernels_that_cannot_be_measured_end_a_study_with_the_reason(tmp_path: Path) -> None:
    """References that may take no time at all: each kernel is tried twice."""
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.timeouts.kernel_s_override = 1e-9
    context = GradingContext(settings, config.Sizes("tiny", 2**18), (0,), GradingSeeds(1, 2, 3))
    store = Store.open(tmp_path / "aa", FACTS)
    goal = Goal(("mw4x5-aa",), ("quiet",), 8)
    try:
        with pytest.raises(UserError, match=r"no kernel of these can be measured: (timeout|score_error): "):
            Study(context, store, [KERNEL, "tsvc_2_s311"], goal).run()
    finally:
        context.close()
    assert [step.step.kernel for step in store.done.values()] == [KERNEL, "tsvc_2_s311"] * 2


def test_one_folder_never_mixes_two_machines_or_rungs(tmp_path: Path) -> None:
    Store.open(tmp_path / "aa", FACTS)
    Store.open(tmp_path / "aa", FACTS)
    with pytest.raises(UserError, match="sizes tiny, this one has laptop"):
        Store.open(tmp_path / "aa", {**FACTS, "sizes": "laptop"})


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other things"):
        Store.open(tmp_path, FACTS)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_look_cut_by_a_kill_is_left_out(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "aa", FACTS)
    store.look({"causes": ["steal"], "note": "n"})
    with store.node_file.path.open("a") as handle:
        handle.write('{"causes": ["st')
    assert Store.open(tmp_path / "aa", FACTS).looks == [{"causes": ["steal"], "note": "n"}]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--kernels tsvc_9*", "tsvc_9*"),
        ("--pairs 0", "--pairs"),
        ("--protocol mw2x5", "mw2x5"),
        ("--protocol mw9x9", "mw9x9"),
        ("--sizes huge", "huge"),
        ("--judge nope", "nope"),
        ("--reference fortran", "--reference=fortran"),
        ("--reference best-of(numba,fortran)", "fortran"),
        ("--cores a", "--cores a"),
        ("--cores 99999", "99999"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["hpcagent-bench", "calibrate", *words.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert len(said.splitlines()) == 1
    assert named in said
    assert list(tmp_path.iterdir()) == []


def test_neighbours_are_busy_and_gone_afterwards() -> None:
    with neighbours.busy(2) as pids:
        assert len(set(pids)) == 2
        before = [_ticks(pid) for pid in pids]
        deadline = time.monotonic() + 60
        while any(_ticks(pid) <= old for pid, old in zip(pids, before, strict=True)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_neighbours_do_not_outlive_a_killed_study() -> None:
    code = (
        "import sys, time; from hpcagent_bench.calibration import neighbours\n"
        "with neighbours.busy(1) as pids:\n    print(*pids, flush=True)\n    time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 60
    while _running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
