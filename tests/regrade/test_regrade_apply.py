"""Grades made later come back by natural key: rewritten, added or replaced, once, and calibrations never."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regrading import (
    RULE,
    SETUP,
    content,
    ended,
    episode,
    final,
    freeze,
    grade,
    grade_under,
    listed,
    put,
    rows,
    told,
)

from hpcagent_bench.errors import UserError
from hpcagent_bench.owed import episode_facts
from hpcagent_bench.regrade import items
from hpcagent_bench.regrade.apply import apply
from hpcagent_bench.regrade.outputs import Outputs, add_final, add_promotion
from hpcagent_bench.results_db import (
    Cell,
    Episode,
    Grade,
    Setup,
    collapse_finals,
    create,
    open_ro,
    transaction,
)
from hpcagent_bench.results_record import add_grade

WHO = episode(0)
CELLS = tuple(Cell(i, f"new{i}", ratio=3.0, status="graded") for i in range(4))


def results(folder: Path, *finals: Grade | None, **more: Any) -> Path:
    """A results database with one accepted submission and these final rows."""
    db = folder / "results.db"
    with contextlib.closing(create(db)) as conn:
        first, *others = finals or (None,)
        mine = put(conn, WHO, grade(WHO, **more), first)
        for one in others:
            assert one is not None
            add_grade(conn, 1, one, mine)
    return db


def output(folder: Path, db: Path, *finals: Grade, shard: int = 0, aa: bool = False) -> Path:
    """The output folder of a run that graded the submission of ``db`` so."""
    (item,) = listed(db, every=True).items or [_any_item(db)]
    with contextlib.closing(open_ro(db)) as source:
        row = items.find(source, item)
        for one in finals:
            add_final(Outputs(folder / "out", shard).path(item, aa), source, row, one)
    return folder / "out"


def _any_item(db: Path) -> items.Item:
    """An item for a submission that is owed nothing."""
    with contextlib.closing(open_ro(db)) as conn:
        row = conn.execute(
            "SELECT g.*, s.hash FROM grades g JOIN grade_sources s ON s.grade_id = g.id"
        ).fetchone()
    values = {field.name: None for field in dataclasses.fields(items.Item)}
    named = {"db": str(db), "grade_id": row["id"], "episode_id": WHO.label, "rep": 1, "job": WHO.job}
    named |= {"kernel": row["kernel"], "kind": row["kind"], "ts_ms": row["ts_ms"], "source_hash": row["hash"]}
    return items.Item(**{**values, **named, "promoted": False})  # type: ignore[arg-type]


def regrade(ts_ms: int = 9000, credited: float | None = 3.0, **more: Any) -> Grade:
    return final(WHO, ts_ms, credited, cells=CELLS, **more)


FAULT = {"status": "score_error", "correct": None, "credited_speedup": None, "reason": "infra: node drifts"}


@pytest.mark.parametrize("held", ["mw4x5", None])
def test_a_regrade_rewrites_the_row_of_its_protocol_or_of_none(tmp_path: Path, held: str | None) -> None:
    db = results(tmp_path, final(WHO, timing_reduction=held))
    before = rows(db)[0]["id"]
    done = apply(db, [output(tmp_path, db, regrade())])
    (row,) = rows(db)
    assert (row["id"], row["credited_speedup"], row["ts_ms"], row["timing_reduction"]) == (
        before,
        3.0,
        9000,
        "mw4x5",
    )
    with contextlib.closing(open_ro(db)) as conn:
        labels = conn.execute("SELECT label FROM grade_cells WHERE grade_id = ?", (before,)).fetchall()
        assert [label for (label,) in labels] == ["new0", "new1", "new2", "new3"]
        assert conn.execute("SELECT count(*) FROM grade_cells").fetchone()[0] == 8
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    assert done.line() == f"1 shard(s) -> {db}: 1 rows {{final: 1}}; 1 superseded final rows"
    assert episode_facts(db, RULE)[0].submissions[0].score == 3.0


def test_applying_again_changes_nothing(tmp_path: Path) -> None:
    db = results(tmp_path, final(WHO, denominator="numba"))
    folder = output(tmp_path, db, regrade())
    apply(db, [folder])
    once = content(db)
    again = apply(db, [folder, folder, folder / "regrade-cells-0.db"])
    assert content(db) == once
    assert (again.shards, dict(again.rows), again.superseded) == (1, {}, 0)


def test_another_protocol_adds_a_row_or_replaces_the_old_one(tmp_path: Path) -> None:
    for mode, left in (("new-row", ["mw4x5", "mwp4x5"]), ("replace", ["mwp4x5"])):
        folder = tmp_path / mode
        folder.mkdir()
        db = results(folder, final(WHO))
        out = output(folder, db, regrade(timing_reduction="mwp4x5"))
        done = apply(db, [out], mode)  # type: ignore[arg-type]
        assert [row["timing_reduction"] for row in rows(db)] == left
        assert done.superseded == (mode == "replace")
        once = content(db)
        apply(db, [out], mode)  # type: ignore[arg-type]
        assert content(db) == once


def test_a_judge_fault_never_takes_a_grades_place(tmp_path: Path) -> None:
    for number, stamp in enumerate(("mw4x5", "mwp4x5")):
        folder = tmp_path / str(number)
        folder.mkdir()
        db = results(folder, final(WHO))
        apply(db, [output(folder, db, regrade(timing_reduction=stamp, **FAULT))], "replace")
        assert rows(db, "kind = 'final' AND status = 'graded'")[0]["credited_speedup"] == 2.0
    faulted = results(tmp_path, final(WHO, **FAULT))
    apply(faulted, [output(tmp_path, faulted, regrade(ts_ms=500))])
    assert [row["status"] for row in rows(faulted)] == ["graded"]


def test_the_newest_of_several_passes_stands_whatever_the_order(tmp_path: Path) -> None:
    seen = set()
    for number, order in enumerate(((0, 1, 2), (2, 0, 1), (1, 2, 0))):
        folder = tmp_path / str(number)
        folder.mkdir()
        db = results(folder)
        passes = (regrade(9000, 3.0), regrade(9500, 4.0), regrade(9900, **{**FAULT, "credited": None}))
        for shard in order:
            output(folder, db, passes[shard], shard=shard)
            apply(db, [folder / "out" / f"regrade-cells-{shard}.db"])
        (row,) = rows(db)
        seen.add((row["credited_speedup"], row["ts_ms"], row["status"]))
    assert seen == {(4.0, 9500, "graded")}


def test_calibration_rows_stay_out_and_credit_nothing(tmp_path: Path) -> None:
    db = results(tmp_path)
    aa = regrade(timing_reduction="mw4x5-aa", credited=None)
    folder = output(tmp_path, db, aa, aa=True)
    with pytest.raises(UserError, match="no output of grade-under run in it"):
        apply(db, [folder])
    before = content(db)
    apply(db, [folder / "regrade-aa-0.db"])
    assert content(db) == before
    with contextlib.closing(create(db)) as conn:  # even where one got in some other way
        add_grade(conn, 1, aa, 1)
        add_grade(conn, 1, dataclasses.replace(aa, ts_ms=9001), 1)
        with transaction(conn):
            assert collapse_finals(conn) == 0
    assert episode_facts(db, RULE)[0].submissions[0].final is None
    assert [item.reason for item in listed(db).items] == ["its submission has no final grade"]


def test_promotions_become_submissions_of_their_episode(tmp_path: Path) -> None:
    db = tmp_path / "results.db"
    with contextlib.closing(create(db)) as conn:
        put(conn, WHO, grade(WHO, "score", 10))
    (item,) = listed(db).items
    promoted = grade(WHO, "promoted", 9000, request_id=item.request_id, optimizer="promoted-unsubmitted")
    with contextlib.closing(open_ro(db)) as source:
        add_promotion(
            tmp_path / "out" / "regrade-0.db", source, items.find(source, item), promoted, regrade()
        )
    done = apply(db, [tmp_path / "out"])
    assert dict(done.rows) == {"promoted": 1, "final": 1}
    assert listed(db).items == []
    (facts,) = episode_facts(db, RULE)
    assert (facts.label, facts.returncode, [s.score for s in facts.submissions]) == (WHO.label, 0, [3.0])


def test_a_promotion_graded_by_two_runs_is_one_submission(tmp_path: Path) -> None:
    db = tmp_path / "results.db"
    with contextlib.closing(create(db)) as conn:
        put(conn, WHO, grade(WHO, "score", 10))
    (item,) = listed(db).items
    for name, ts_ms, columns in (("a", 8000, {}), ("b", 9000, {}), ("c", 9500, {"status": "score_error"})):
        named = {"request_id": item.request_id, "optimizer": "promoted-unsubmitted", **columns}
        promoted = grade(WHO, "promoted", ts_ms, **named)
        with contextlib.closing(open_ro(db)) as source:
            row = items.find(source, item)
            add_promotion(
                tmp_path / name / "regrade-0.db", source, row, promoted, None if columns else regrade()
            )
    for names in ("c", "ab", "ba", "cab"):
        apply(db, [tmp_path / name for name in names])
    assert [row["ts_ms"] for row in rows(db, "kind = 'promoted'")] == [9000]
    assert len(rows(db)) == 1


def test_grades_of_another_databases_episodes_stay_out(tmp_path: Path) -> None:
    folder = output(tmp_path, results(tmp_path), regrade())
    other = tmp_path / "other.db"
    with contextlib.closing(create(other)) as conn:
        put(conn, episode(1), grade(episode(1)))
    before = content(other)
    found = grade_under("apply", "--into", other, folder, "--json")
    assert (told(found)["rows"], told(found)["strangers"]) == ({}, 2)
    assert "left out: 2 grades of episodes that" in found.stderr
    assert content(other) == before


def test_what_an_interrupted_apply_left_is_settled_by_the_next(tmp_path: Path) -> None:
    from hpcagent_bench.results_db import merge

    db = results(tmp_path, final(WHO))
    folder = output(tmp_path, db, regrade(timing_reduction="mwp4x5"))
    merge(db, [folder / "regrade-cells-0.db"])  # killed before the rows were collapsed
    apply(db, [folder], "replace")
    assert [row["timing_reduction"] for row in rows(db)] == ["mwp4x5"]


def test_a_job_read_again_does_not_bring_back_what_a_regrade_rewrote(tmp_path: Path) -> None:
    from hpcagent_bench.cluster.merge_results import merge_run

    job = tmp_path / "7" / "judge" / "rank-0"
    job.mkdir(parents=True)
    shutil.copy(results(tmp_path, final(WHO, denominator="numba")), job / "hpcagent_bench0.db")
    (tmp_path / "results.db").unlink()
    merge_run(tmp_path)
    db = tmp_path / "results.db"
    apply(db, [output(tmp_path, db, regrade())])
    with contextlib.closing(create(job / "hpcagent_bench0.db")) as conn:
        ended(conn, WHO, turns=3)
    assert merge_run(tmp_path).merged
    assert [(row["denominator"], row["credited_speedup"]) for row in rows(db)] == [("c", 3.0)]


def test_a_broken_output_is_named_and_the_others_are_applied(tmp_path: Path) -> None:
    db = results(tmp_path)
    folder = output(tmp_path, db, regrade())
    (folder / "regrade-cells-1.db").write_text("torn " * 1000)
    found = grade_under("apply", "--into", db, folder, "--json")
    summary = told(found, 1)
    assert (summary["shards"], summary["rows"], summary["superseded"]) == (1, {"final": 1}, 0)
    assert "regrade-cells-1.db" in found.stderr
    other = tmp_path / "regrade-2.db"
    with contextlib.closing(create(other)) as conn:
        conn.execute("PRAGMA user_version = 5")
    assert "version 5, this program reads version 6" in grade_under("apply", "--into", db, other).stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["none"], "none: no such file or folder; name the --out-dir"),
        (["--on-protocol-change", "replac", "x"], "replac: not known; did you mean 'replace'"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, words: list[str], problem: str) -> None:
    found = grade_under("apply", "--into", results(tmp_path), *words)
    assert (found.returncode, found.stdout, len(found.stderr.splitlines())) == (2, "", 1)
    assert problem in found.stderr


def test_another_setup_of_the_same_name_is_refused(tmp_path: Path) -> None:
    db = results(tmp_path)
    folder = output(tmp_path, db, regrade())
    with contextlib.closing(create(folder / "regrade-cells-0.db")) as conn:
        conn.execute("UPDATE setups SET language = 'cpp'")
    found = grade_under("apply", "--into", db, folder)
    assert (found.returncode, rows(db)) == (2, [])
    assert "language='c', now it comes with 'cpp'" in found.stderr


def test_owed_collect_counts_regrades_that_are_not_applied_yet(tmp_path: Path) -> None:
    from experiments import progress, runtree
    from experiments.runtree import RunRoot

    freeze(tmp_path)
    db = results(tmp_path, final(WHO, timing_reduction="mwp4x5"))
    work = [[SETUP.setup, str(WHO.kernel), 1]]
    (tmp_path / runtree.PLAN).write_text(f'{{"designed": {work}, "words": []}}'.replace("'", '"'))
    folder = output(tmp_path, db, regrade(correct=None, status="error", credited=None, reason="task: args"))
    root, before = RunRoot(tmp_path), content(db)
    state = progress.take(root, merge=False)
    assert [i.owed_class for i in state.plan.ungraded] == ["final"]
    (setup,) = state.setups()
    assert (setup.designed, setup.owed, setup.ungraded, list(setup.reasons)) == (
        1,
        0,
        1,
        ["final: its final grade is under mwp4x5, credited is mw4x5"],
    )
    state = progress.take(root, merge=False, regrades=[folder])
    assert [(i.owed_class, i.reason) for i in state.plan.owed] == [("task", "task: args")]
    assert content(db) == before


STAMPS = st.sampled_from(["mw4x5", "mwp4x5", "mw4x5-aa", None])
FINALS = st.lists(st.tuples(STAMPS, st.integers(1, 9), st.booleans()), max_size=5)


@settings(max_examples=25, deadline=None)
@given(FINALS, st.randoms())
def test_any_rows_collapse_to_one_a_protocol_and_stay_so(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str | None, int, bool]], rng: random.Random
) -> None:
    found = set()
    for _ in range(2):
        rng.shuffle(made)
        with contextlib.closing(create(tmp_path_factory.mktemp("many") / "a.db")) as conn:
            conn.execute("PRAGMA synchronous = OFF")
            of = put(conn, WHO, grade(WHO))
            for stamp, number, fault in made:
                columns = {"timing_reduction": stamp, "reason": f"{number} {fault}"}
                add_grade(conn, 1, _numbered(number, {**(FAULT if fault else {}), **columns}), of)
            with transaction(conn):
                gone = collapse_finals(conn)
                assert collapse_finals(conn) == 0
            left = _left(conn)
        aa = sum(stamp == "mw4x5-aa" for stamp, _, _ in made)
        named = {stamp for stamp, _, _ in made if stamp} - {"mw4x5-aa"}
        unnamed = any(stamp is None for stamp, _, _ in made)
        assert len(left) == len(made) - gone == aa + (len(named) or int(unnamed))
        for stamp in named:
            (mine,) = [row for row in left if row[0] == stamp]
            best = max((not fault, number) for s, number, fault in made if s == stamp)
            assert mine[1:] == (best[1], not best[0])
        found.add(tuple(sorted(left, key=str)) if not aa else None)
    assert len(found) == 1


def _numbered(number: int, columns: dict[str, Any]) -> Grade:
    return final(WHO, 1000 * number, **{"credited": float(number), **columns})


def _left(conn: sqlite3.Connection) -> list[tuple[Any, ...]]:
    told_rows = conn.execute("SELECT timing_reduction, reason FROM grades WHERE kind = 'final'")
    return [(stamp, int(text.split()[0]), text.split()[1] == "True") for stamp, text in told_rows]


def test_two_setups_and_episodes_of_an_output_are_kept_apart(tmp_path: Path) -> None:
    db = tmp_path / "results.db"
    with contextlib.closing(create(db)) as conn:
        for problem in range(3):
            put(conn, episode(problem), grade(episode(problem)))
        twin = Episode("u-c-auto", 7, "u-c-auto.n0.p0.w0", kernel=WHO.kernel)
        from hpcagent_bench.results_db import record

        record(conn, Setup("u-c-auto", study="t", language="c", harness="autotune"), twin, grade(twin))
    for item in listed(db).items:
        with contextlib.closing(open_ro(db)) as source:
            row = items.find(source, item)
            who = Episode(item.setup, item.job, item.episode_id, kernel=item.kernel)
            add_final(tmp_path / "out" / "regrade-cells-0.db", source, row, final(who, 9000, 3.0))
    assert dict(apply(db, [tmp_path / "out"]).rows) == {"final": 4}
    assert [f.submissions[0].score for f in episode_facts(db, RULE)] == [3.0] * 4
