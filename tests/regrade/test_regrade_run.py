"""Real grades of recorded submissions: outcomes, shards, kills, calibrations, and what is refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from regrading import (
    KERNELS,
    command,
    content,
    episode,
    final,
    freeze,
    grade,
    grade_under,
    honest,
    judge,
    listed,
    put,
    rows,
    seeds,
    told,
)

from hpcagent_bench import config
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import grade_under as grading
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.owed import episode_facts
from hpcagent_bench.regrade import items, run
from hpcagent_bench.regrade.apply import apply
from hpcagent_bench.results_db import create, open_ro
from hpcagent_bench.stats.population import answers

COLUMNS = ("job", "label", "kernel", "kind", "status", "correct", "timing_reduction", "denominator")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


def fill(db: Path, *sources: str | None, **columns: Any) -> Path:
    """One accepted submission a source (None: the reference), each with a final under another protocol."""
    with contextlib.closing(create(db)) as conn:
        for number, source in enumerate(sources):
            who = episode(number, slot=1 + number // len(KERNELS))
            text = honest(str(who.kernel)) if source is None else source
            put(conn, who, grade(who, text=text, **columns), final(who, timing_reduction="mwp4x5"))
    items.write(db.parent / "worklist.jsonl", listed(db).items)
    return db.parent / "worklist.jsonl"


@contextlib.contextmanager
def context(**more: Any) -> Iterator[GradingContext]:
    chosen = {
        "settings": judge(),
        "sizes": config.Sizes("tiny", 2**18),
        "seeds": GradingSeeds(1, 2, 3),
        **more,
    }
    cores = (max(os.sched_getaffinity(0)),)
    made = GradingContext(cores=cores, **chosen)
    try:
        yield made
    finally:
        made.close()


def graded(worklist: Path, folder: str = "out", **more: Any) -> tuple[run.Report, list[str]]:
    """Grade a worklist in this process; the report and the lines told."""
    lines: list[str] = []
    with context() as made:
        report = run.run(run.Options(worklist, worklist.parent / folder, **more), made, lines.append)
    return report, lines


def shape(db: Path, where: str = "kind <> 'score'") -> list[tuple[Any, ...]]:
    """The grades of a database without their times."""
    return [tuple(row[c] for c in COLUMNS) for row in rows(db, where)]


def test_each_outcome_is_recorded_as_such_and_answers_its_task(db: Path) -> None:
    wrong = honest(KERNELS[2]).replace("+", "-")
    with contextlib.closing(create(db)) as conn:
        submissions = ((None, {}), ("no C", {}), (wrong, {}), ("no C", {"task_hash": "0" * 64}))
        for number, (source, columns) in enumerate(submissions):
            who = episode(number)
            text = honest(str(who.kernel)) if source is None else source
            put(conn, who, grade(who, text=text, **columns), final(who, denominator="numba"))
        for problem in (4, 5):
            who = episode(problem, kernel=KERNELS[0], slot=problem)
            text = honest(KERNELS[0]) if problem == 4 else "no C"
            put(conn, who, grade(who, "score", 10, text=text, task_hash=None if problem == 4 else "0" * 64))
    items.write(db.parent / "w.jsonl", listed(db).items)
    report, lines = graded(db.parent / "w.jsonl")
    assert report.complete
    assert (report.outcomes, report.promoted) == ({"solved": 2, "unsolved": 2, "task": 2}, 2)
    assert len(lines) == 6
    apply(db, [db.parent / "out"])
    finals = {(row["kernel"], row["slot"]): row for row in rows(db)}
    solved = finals[KERNELS[0], 1]
    assert (solved["status"], solved["correct"], solved["denominator"]) == ("graded", 1, "c")
    assert solved["credited_speedup"] is not None
    assert solved["grading_protocol"] == "sealed-nonce-v1+host-monotonic"
    broken, wrong_row, changed = (finals[kernel, 1] for kernel in KERNELS[1:])
    assert [(row["status"], row["correct"]) for row in (broken, wrong_row, changed)] == [
        ("graded", 0),
        ("graded", 0),
        ("error", None),
    ]
    assert broken["reason"].startswith("input 1 (aligned")
    assert "build_error: " in broken["reason"]
    assert "rep-verify[" in wrong_row["reason"]
    assert changed["reason"].startswith("task: changed since the submission was graded (000000000000 to ")
    assert "input 1 (aligned" in changed["reason"]
    kinds = [row["kind"] for row in rows(db, f"kernel = '{KERNELS[0]}' AND slot > 3")]
    assert sorted(kinds) == ["final", "final", "promoted", "promoted", "score", "score"]
    found = answers(episode_facts(db))
    states = {(work.kernel, work.slot): answer.state for work, answer in found.items()}
    assert states == {
        (KERNELS[0], 1): "solved",
        (KERNELS[1], 1): "unsolved",
        (KERNELS[2], 1): "unsolved",
        (KERNELS[3], 1): "unanswered",
        (KERNELS[0], 4): "solved",
        (KERNELS[0], 5): "unanswered",
    }
    assert listed(db).items == []


def test_a_submission_is_graded_as_it_was_handed_in(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(made: GradingContext, submission: Any) -> Any:
        seen.append(submission)
        raise JudgeFault("looked at")

    monkeypatch.setattr(grading, "final_grade", look)
    columns = {
        "requested_build": ["-DN=3", "-lm"],
        "requested_libraries": ["m"],
        "build_commands": ["clang -O3 k.c"],
        "workspace_bytes": 4096,
        "source_mode": "source_file",
    }
    graded(fill(db, "int x;", **columns))
    (one,) = seen
    assert (one.source, one.language, one.build, one.libraries) == ("int x;", "c", ("-DN=3", "-lm"), ("m",))
    assert (one.family, one.workspace_bytes, one.source_mode) == ("llvm", 4096, "source_file")
    with contextlib.closing(create(db)) as conn:
        conn.execute("UPDATE grades SET workspace_bytes = NULL")
    graded(db.parent / "worklist.jsonl")
    assert 64 << 20 < seen[1].workspace_bytes <= (64 << 20) + 2**18  # the rung's arrays and 64 MiB


def test_a_judge_fault_is_recorded_and_tried_again(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worklist = fill(db, None)
    monkeypatch.setattr(grading, "final_grade", _unfit)
    report, lines = graded(worklist)
    assert (report.complete, report.outcomes) == (False, {"fault": 1})
    assert "fault: infra: node steals" in lines[0]
    apply(db, [db.parent / "out"])
    assert [item.reason for item in listed(db).items] == ["judge fault: infra: node steals"]
    monkeypatch.undo()
    assert graded(worklist)[0].complete
    (output,) = (db.parent / "out").glob("*.db")
    assert [row["status"] for row in rows(output)] == ["graded"]
    apply(db, [output])
    assert listed(db).items == []


def _unfit(made: GradingContext, submission: Any) -> Any:
    raise JudgeFault("infra: node steals")


def test_an_unfit_node_does_not_go_through_the_whole_worklist(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worklist = fill(db, *([None] * 4))
    monkeypatch.setattr(grading, "final_grade", _unfit)
    report, _ = graded(worklist)
    assert (report.outcomes, report.stopped) == ({"fault": 3}, "3 grades in a row found this node unfit")


def test_calibrations_are_recorded_under_their_own_stamp_and_credit_nothing(db: Path) -> None:
    worklist = fill(db, "no C", None)
    report, lines = graded(worklist, aa=True)
    assert (report.complete, report.outcomes) == (True, {"calibrated": 2})
    assert all("calibrated, ratio " in line for line in lines)
    (output,) = (db.parent / "out").glob("*.db")
    assert output.name == "regrade-aa-0.db"
    found = rows(output)
    assert {row["timing_reduction"] for row in found} == {"mw4x5-aa"}
    assert {row["credited_speedup"] for row in found} == {None}
    assert graded(worklist, aa=True)[0].held == 2
    assert graded(worklist)[0].held == 0
    assert episode_facts(output)[0].submissions[0].final is None


def begin(worklist: Path, out: Path, *words: object) -> subprocess.Popen[str]:
    argv = command("run", "--worklist", worklist, "--out-dir", out, "--seeds", seeds(worklist.parent), *words)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    stdout, stderr = process.communicate(timeout=500)
    return told(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr), code)


def test_two_shards_at_once_give_what_one_gives(tmp_path: Path, db: Path) -> None:
    freeze(tmp_path)
    worklist = fill(db, None, "no C", None, None, None)
    with contextlib.closing(create(db)) as conn:
        who = episode(9, kernel=KERNELS[1], slot=9)
        put(conn, who, grade(who, "score", text=honest(KERNELS[1])))
    items.write(worklist, listed(db).items)
    shards = [begin(worklist, tmp_path / "two", "--shard", i, "--shards", 2, "--json") for i in range(2)]
    one = begin(worklist, tmp_path / "one", "--json")
    parts = [finish(shard) for shard in shards]
    assert [part["items"] for part in parts] == [3, 3]
    assert finish(one)["graded"] == sum(part["graded"] for part in parts) == 6
    for name in ("one", "two"):
        with (
            contextlib.closing(open_ro(db)) as source,
            contextlib.closing(_plain(tmp_path / f"{name}.db")) as to,
        ):
            source.backup(to)
        apply(tmp_path / f"{name}.db", [tmp_path / name])
    assert shape(tmp_path / "one.db") == shape(tmp_path / "two.db") != shape(db)
    assert listed(tmp_path / "two.db").items == []
    assert apply(tmp_path / "two.db", [tmp_path / "two"]).rows == {}


def _plain(path: Path) -> Any:
    import sqlite3

    return sqlite3.connect(path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_ended_goes_on_where_it_was(tmp_path: Path, db: Path, how: signal.Signals) -> None:
    freeze(tmp_path)
    worklist = fill(db, *([None] * 4))
    process = begin(worklist, tmp_path / "out", "--json")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[1/4]"):
            break
    process.send_signal(how)
    if how == signal.SIGTERM:
        assert finish(process, 1)["stopped"] == "told to end"
    else:
        process.communicate(timeout=60)
    before = shape(tmp_path / "out" / "regrade-cells-0.db", "kind = 'final'")
    rest = finish(begin(worklist, tmp_path / "out", "--json"))
    assert 1 <= rest["held"] == len(before) < 4
    assert rest["graded"] == 4 - rest["held"]
    finals = shape(tmp_path / "out" / "regrade-cells-0.db", "kind = 'final'")
    assert (len(finals), len(set(finals))) == (4, 4)
    assert finish(begin(worklist, tmp_path / "out", "--json"))["held"] == 4
    with contextlib.closing(open_ro(tmp_path / "out" / "regrade-cells-0.db")) as conn:
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
        cells = conn.execute("SELECT count(*) FROM grade_cells GROUP BY grade_id").fetchall()
        assert {number for (number,) in cells} == {4}


def test_slurm_says_which_shard_it_is_and_a_shard_has_one_process(
    tmp_path: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze(tmp_path)
    worklist = fill(db, None, "no C")
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    found = finish(begin(worklist, tmp_path / "out", "--json"))
    assert (found["shard"], found["shards"], found["items"]) == (1, 2, 1)
    from hpcagent_bench.regrade.outputs import Outputs

    with Outputs(tmp_path / "out", 0).alone(aa=False):
        refused = begin(worklist, tmp_path / "out", "--shard", 0)
        assert "shard 0 is being graded into" in refused.communicate(timeout=60)[1]
        assert refused.returncode == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["--judge", "default"],
            "owed a grade with denominator c, this would make one with best-of(numba,c)",
        ),
        (["--protocol", "mwp4x5"], "owed a grade with protocol mw4x5, this would make one with mwp4x5"),
        (["--sizes", "laptop"], "owed a grade with rung tiny, this would make one with laptop"),
        (["--shard", "2", "--shards", "2"], "--shard 2 of --shards 2; shards count from 0"),
        (["--worklist", "none.jsonl"], "none.jsonl: no worklist"),
        (["--seeds", "none.json"], "no seeds file at none.json"),
        (["--cores", "999"], "core 999 is not granted"),
    ],
)
def test_what_would_never_be_credited_is_refused_before_anything_is_graded(
    tmp_path: Path, db: Path, words: list[str], problem: str
) -> None:
    worklist = fill(db, None)
    if "--judge" not in words:
        freeze(tmp_path)
    found = grade_under(
        "run", "--worklist", worklist, "--out-dir", tmp_path / "out", "--seeds", seeds(tmp_path), *words
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert problem in found.stderr.splitlines()[-1]
    assert not [*(tmp_path / "out").glob("*.db")]


def test_public_seeds_grade_nothing(db: Path) -> None:
    worklist = fill(db, None)
    with (
        context(seeds=GradingSeeds(1, 2, 3, public=True)) as made,
        pytest.raises(UserError, match="the seeds are the public ones"),
    ):
        run.run(run.Options(worklist, db.parent / "out"), made, print)


def test_a_row_that_is_no_longer_there_is_named(db: Path) -> None:
    worklist = fill(db, None)
    with contextlib.closing(create(db)) as conn:
        conn.execute("UPDATE grades SET ts_ms = 77 WHERE kind = 'submit'")
    with pytest.raises(UserError, match=r"does not hold the submit of .* any more; make the worklist again"):
        graded(worklist)


def test_grading_leaves_the_database_as_it_was(db: Path) -> None:
    worklist = fill(db, None)
    before = content(db)
    graded(worklist)
    assert content(db) == before
