"""What the worklist owes a final grade, what it leaves out, and that the planner says the same."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regrading import (
    KERNELS,
    RULE,
    SETUP,
    but,
    ended,
    episode,
    final,
    freeze,
    grade,
    grade_under,
    judge,
    listed,
    put,
    told,
)

from hpcagent_bench.episodes import Work
from hpcagent_bench.errors import UserError
from hpcagent_bench.owed import episode_facts, plan
from hpcagent_bench.regrade import items
from hpcagent_bench.results_db import Episode, Setup, SetupConflict, create, record
from hpcagent_bench.studies import standing

ONE = episode(0)
OPEN = "open-nonce-v1+host-monotonic"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.fixture
def conn(db: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(create(db)) as made:
        yield made


STALE: dict[str, tuple[dict[str, Any], str]] = {
    "another protocol": ({"timing_reduction": "mwp4x5"}, "is under mwp4x5, credited is mw4x5"),
    "no protocol": ({"timing_reduction": None}, "names no protocol, credited is mw4x5"),
    "another denominator": (
        {"denominator": "best-of(numba,c)"},
        "divides by best-of(numba,c), configured is c",
    ),
    "no denominator": ({"denominator": None}, "divides by nothing named, configured is c"),
    "no seal": ({"grading_protocol": OPEN, "credited_speedup": None}, "was made without the seal"),
    "not credited": ({"credited_speedup": None}, "is solved and not credited"),
}


@pytest.mark.parametrize("name", STALE)
def test_a_final_grade_that_cannot_be_credited_is_owed_another(
    db: Path, conn: sqlite3.Connection, name: str
) -> None:
    columns, reason = STALE[name]
    put(conn, ONE, grade(ONE), final(ONE, **columns))
    (item,) = listed(db).items
    assert item.reason == f"its final grade {reason}"
    assert (item.promoted, item.kind, item.ts_ms, item.protocol) == (False, "submit", 1000, "mw4x5")
    assert (item.reduction, item.speedup) == (
        columns.get("timing_reduction", "mw4x5"),
        columns.get("credited_speedup", 2.0),
    )
    assert (item.job, item.episode_id, item.setup, item.denominator) == (7, ONE.label, SETUP.setup, "c")


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"credited_speedup": 0.25},
        {"correct": False, "credited_speedup": None, "reason": "input 1: crash"},
        {"suspect": True, "credited_speedup": None},
        {"status": "error", "correct": None, "credited_speedup": None, "reason": "task: args changed"},
    ],
)
def test_a_decided_final_grade_is_not_owed_another(
    db: Path, conn: sqlite3.Connection, columns: dict[str, Any]
) -> None:
    put(conn, ONE, grade(ONE), final(ONE, **columns))
    assert listed(db).items == []


def test_missing_and_faulted_finals_are_owed_one(db: Path, conn: sqlite3.Connection) -> None:
    put(conn, episode(0), grade(episode(0)))
    fault = final(
        episode(1), status="score_error", correct=None, credited_speedup=None, reason="infra: node x"
    )
    put(conn, episode(1), grade(episode(1)), fault)
    assert {item.reason for item in listed(db).items} == {
        "its submission has no final grade",
        "judge fault: infra: node x",
    }
    assert not any(item.promoted for item in listed(db).items)


def test_the_row_under_the_credited_protocol_stands_beside_others(db: Path, conn: sqlite3.Connection) -> None:
    mine = put(conn, ONE, grade(ONE), final(ONE, timing_reduction="mwp4x5"))
    assert len(listed(db).items) == 1
    for row in (final(ONE, 1), final(ONE, 5000, timing_reduction="mw4x5-aa", credited_speedup=None)):
        _add(conn, mine, row)
    assert listed(db).items == []
    assert len(listed(db, stamp="mwp4x5").items) == 0
    assert episode_facts(db, RULE)[0].submissions[0].score == 2.0


def _add(conn: sqlite3.Connection, of_grade: int, row: Any) -> None:
    from hpcagent_bench.results_record import add_grade

    who = conn.execute("SELECT episode_id FROM grades WHERE id = ?", (of_grade,)).fetchone()[0]
    add_grade(conn, who, row, of_grade)


def test_cuts_make_finals_and_refusals_older_than_them_owed(
    tmp_path: Path, db: Path, conn: sqlite3.Connection
) -> None:
    cuts = tmp_path / "cuts.yaml"
    cuts.write_text("kernels: {tsvc_2_s311: 2026-01-01}\nreferences: {numba: 2026-01-01}\n")
    before, after = 1_767_225_599_999, 1_767_225_600_000
    cut, other = KERNELS.index("tsvc_2_s311"), KERNELS.index("ext_war_unit")
    solved = [(cut, 1, before), (cut, 2, after), (other, 1, before)]
    for kernel, slot, ts_ms in solved:
        who = episode(kernel + 4 * slot, slot=slot)
        put(conn, who, grade(who, ts_ms=ts_ms), final(who, ts_ms))
    for slot, ts_ms in ((3, before), (4, after)):
        who = episode(cut + 4 * slot, slot=slot)
        put(conn, who, grade(who, ts_ms=ts_ms, status="incorrect", correct=False))
    cut_told = "older than the cut of tsvc_2_s311 (2026-01-01 00:00 UTC)"
    assert {(i.kernel, i.slot, i.promoted, i.reason) for i in listed(db, cuts_file=cuts).items} == {
        ("tsvc_2_s311", 1, False, f"its final grade is {cut_told}"),
        ("tsvc_2_s311", 3, True, f"it was refused by grading {cut_told}"),
    }
    assert listed(db).items == []


def test_a_refusal_submitted_again_after_the_cut_is_settled(
    tmp_path: Path, db: Path, conn: sqlite3.Connection
) -> None:
    cuts = tmp_path / "cuts.yaml"
    cuts.write_text("kernels: {polygon_area_terms: 2026-01-01}\n")
    refused = {"status": "incorrect", "correct": False, "credited_speedup": None, "reason": "input 1: x"}
    put(conn, ONE, grade(ONE, ts_ms=1000, **refused))
    assert [item.promoted for item in listed(db, cuts_file=cuts).items] == [True]
    put(conn, ONE, grade(ONE, "promoted", ts_ms=1_767_225_700_000, **refused))
    assert listed(db, cuts_file=cuts).items == []


def test_an_ended_episode_without_a_submission_has_its_last_correct_preview_promoted(
    db: Path, conn: sqlite3.Connection
) -> None:
    for ts_ms, correct in ((10, True), (20, True), (30, False)):
        put(conn, ONE, grade(ONE, "score", ts_ms, correct=correct, timing_reduction="mw2x5"))
    (item,) = listed(db).items
    assert (item.kind, item.ts_ms, item.promoted) == ("score", 20, True)
    assert item.reason == "it never submitted its last correct source"
    assert listed(db).promotions == 1


def test_a_submission_the_judge_could_not_grade_is_submitted_again(
    db: Path, conn: sqlite3.Connection
) -> None:
    put(conn, ONE, grade(ONE, "score", 10))
    fault = grade(ONE, ts_ms=20, status="score_error", correct=None, reason="infra: node drifts")
    put(conn, ONE, fault)
    (item,) = listed(db).items
    assert (item.kind, item.promoted, item.reason) == ("submit", True, "judge fault: infra: node drifts")


@pytest.mark.parametrize(
    "columns", [{"returncode": None}, {"cancelled": 1}, {"returncode": 123}, {"final_attempt_start_ms": 11}]
)
def test_what_must_not_be_promoted_is_left_to_a_new_episode(
    db: Path, conn: sqlite3.Connection, columns: dict[str, Any]
) -> None:
    put(conn, ONE, grade(ONE, "score", 10))
    ended(conn, ONE, **columns)
    assert listed(db).items == []
    assert len(plan([_work(ONE)], episode_facts(db, RULE)).owed) == 1


def test_rows_of_no_analysis_are_left_out_and_counted(db: Path, conn: sqlite3.Connection) -> None:
    adhoc = Episode(SETUP.setup, None, "adhoc", kernel=KERNELS[0])
    put(conn, adhoc, grade(adhoc))
    put(conn, episode(0), but(grade(episode(1)), ts_ms=999_000))
    for number, columns in ((1, {"cancelled": 1}), (2, {"final_attempt_start_ms": 5000})):
        put(conn, episode(number), grade(episode(number)))
        ended(conn, episode(number), **columns)
    library = episode(3)
    put(conn, library, grade(library, text=None, source_mode="library"))
    unknown = episode(4, kernel="no_such_kernel")
    put(conn, unknown, grade(unknown))
    found = listed(db)
    assert found.items == []
    assert found.left_out == {
        "adhoc: no episode's": 1,
        "another kernel than its episode's (X6)": 1,
        "cancelled episode (X8)": 1,
        "before its episode's final attempt (X7)": 1,
        "a library is not kept: its episode is owed again": 1,
        "kernel 'no_such_kernel' does not exist": 1,
    }
    owed = {item.work.kernel for item in plan([_work(library)], episode_facts(db, RULE)).owed}
    assert owed == {library.kernel}


def test_only_the_submission_that_decides_is_listed_unless_all_are_wanted(
    db: Path, conn: sqlite3.Connection
) -> None:
    for ts_ms in (10, 20, 30):
        put(conn, ONE, grade(ONE, ts_ms=ts_ms))
    again = Episode(SETUP.setup, 8, ONE.label, kernel=ONE.kernel)
    put(conn, again, grade(again, ts_ms=25))
    found = listed(db)
    assert [(item.job, item.ts_ms, item.submissions) for item in found.items] == [(7, 30, 3)]
    assert found.left_out == {"a later submission or episode of its task decides": 3}
    assert [(i.job, i.ts_ms) for i in listed(db, every=True).items] == [(7, 10), (7, 20), (7, 30), (8, 25)]


def test_two_databases_of_one_episode_owe_it_once_and_an_answer_in_either_counts(
    tmp_path: Path, db: Path, conn: sqlite3.Connection
) -> None:
    put(conn, ONE, grade(ONE))
    other = tmp_path / "other.db"
    with contextlib.closing(create(other)) as second:
        put(second, ONE, grade(ONE))
    assert len(listed(db, other).items) == len(listed(other, db, db).items) == 1
    third = tmp_path / "third.db"
    with contextlib.closing(create(third)) as answered:
        put(answered, ONE, grade(ONE), final(ONE))
    assert listed(db, third).items == listed(third, db).items == []


def test_databases_that_describe_a_setup_differently_are_not_read_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    record(create(first), SETUP, ONE, grade(ONE))
    other = Setup(SETUP.setup, study="t", language="fortran", harness="autotune", temperature=None)
    record(create(second), other, ONE, grade(ONE))
    with pytest.raises(SetupConflict, match=r"language='c' in .*a\.db, 'fortran' in .*b\.db"):
        listed(first, second)


def test_the_order_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    found = []
    for seed in range(3):
        db = tmp_path / f"{seed}.db"
        with contextlib.closing(create(db)) as conn:
            order = list(range(8))
            random.Random(seed).shuffle(order)
            for problem in order:
                put(conn, episode(problem), grade(episode(problem)))
        found.append([item.key for item in listed(db).items])
        assert [item.kernel for item in listed(db).items] == sorted(item.kernel for item in listed(db).items)
    assert found[0] == found[1] == found[2]


def test_the_verb_writes_json_lines_and_says_what_it_left_out(
    tmp_path: Path, db: Path, conn: sqlite3.Connection
) -> None:
    freeze(tmp_path)
    put(conn, episode(0), grade(episode(0)))
    put(conn, episode(1), grade(episode(1)), final(episode(1), denominator="numba"))
    put(conn, episode(2), grade(episode(2), "score"))
    put(conn, episode(3), grade(episode(3)), final(episode(3)))
    put(conn, episode(0), grade(episode(0), ts_ms=900))
    out = tmp_path / "w.jsonl"
    found = grade_under("worklist", "--db", db, "--out", out, "--json")
    summary = told(found)
    assert (summary["items"], summary["promotions"], summary["setups"]) == (3, 1, {SETUP.setup: 3})
    superseded = "a later submission or episode of its task decides"
    assert found.stderr.splitlines() == [f"left out  1  {superseded}"]
    assert summary["left_out"] == {superseded: 1}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["kernel"] for line in lines] == sorted(KERNELS[:3])
    needed = {"db", "grade_id", "episode_id", "kernel", "ts_ms", "setup", "language", "source_mode", "final"}
    needed |= {"job", "source_hash", "speedup", "reduction", "promoted", "workspace_bytes", "libraries"}
    assert needed <= set(lines[0])
    assert items.read(out) == listed(db).items
    plain = grade_under("worklist", "--db", db, "--out", out)
    told_lines = [f"{SETUP.setup}  3", f"3 submissions (1 promotion) -> {out}; 1 left out"]
    assert plain.stdout.splitlines() == told_lines


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--protocol", "mw4x6"], "protocol 'mw4x6' is not registered; did you mean 'mw4x5'"),
        (["--protocol", "mw2x5"], "mw2x5 is a preview protocol"),
        (["--db", "none.db"], "none.db: no such results database"),
        (["--judge", "defualt"], "did you mean 'default'"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    tmp_path: Path, db: Path, conn: sqlite3.Connection, words: list[str], problem: str
) -> None:
    out = tmp_path / "w.jsonl"
    found = grade_under("worklist", "--db", db, "--out", out, *words)
    assert (found.returncode, found.stdout) == (2, "")
    assert problem in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda line: "{torn", "w.jsonl:1: not a JSON object"),
        (lambda line: line.replace('"kernel"', '"kernal"'), "w.jsonl:1: kernel is missing"),
        (lambda line: line.replace('"ts_ms": 1000', '"ts_ms": "x"'), "w.jsonl:1: ts_ms='x' does not fit"),
        (lambda line: f"{line}\n{line}", "an item is listed twice"),
    ],
)
def test_a_broken_worklist_is_refused(
    tmp_path: Path, db: Path, conn: sqlite3.Connection, change: Any, problem: str
) -> None:
    put(conn, ONE, grade(ONE))
    path = tmp_path / "w.jsonl"
    items.write(path, listed(db).items)
    path.write_text(change(path.read_text().strip()))
    with pytest.raises(UserError, match=r"again|JSON") as caught:
        items.read(path)
    assert problem in str(caught.value)


# The planner and the worklist


def _work(who: Episode) -> Work:
    return Work(SETUP.setup, str(who.kernel), who.slot)


FINALS = st.sampled_from(
    [
        None,
        {},
        {"correct": False, "credited_speedup": None, "reason": "input 1: x"},
        {"timing_reduction": "mwp4x5"},
        {"denominator": "numba"},
        {"grading_protocol": OPEN, "credited_speedup": None},
        {"status": "score_error", "correct": None, "credited_speedup": None, "reason": "oom"},
        {"status": "error", "correct": None, "credited_speedup": None, "reason": "task: x"},
        {"timing_reduction": "mw4x5-aa", "credited_speedup": None},
    ]
)
GRADES = st.tuples(
    st.sampled_from(["submit", "score", "promoted", "harvested"]),
    st.sampled_from(["ok", "ok", "incorrect", "score_error"]),
    st.integers(1, 40),
    st.booleans(),
    FINALS,
)
EPISODES = st.tuples(
    st.integers(0, 2),
    st.sampled_from([None, 0, 1, 123, 124]),
    st.booleans(),
    st.none() | st.integers(1, 40),
    st.lists(GRADES, max_size=3),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(EPISODES, max_size=5))
def test_every_task_is_in_exactly_one_place_and_the_worklist_is_one_of_them(
    tmp_path_factory: pytest.TempPathFactory, history: list[Any]
) -> None:
    db = tmp_path_factory.mktemp("history") / "results.db"
    with contextlib.closing(create(db)) as conn:
        conn.execute("PRAGMA synchronous = OFF")
        for job, told_episode in enumerate(history):
            _write(conn, job, told_episode)
    designed = [Work(SETUP.setup, kernel) for kernel in KERNELS[:3]]
    facts = episode_facts(db, RULE)
    found = plan(designed, facts)
    parts = [
        [item.work for item in found.owed],
        [*found.delivered],
        [*found.in_flight],
        [item.work for item in found.ungraded],
    ]
    assert sorted(work for part in parts for work in part) == sorted(designed)
    worklist = listed(db)
    assert sorted(Work(item.setup, item.kernel, item.slot) for item in worklist.items) == sorted(parts[3])
    reasons = {item.work: item.reason for item in found.ungraded}
    for item in worklist.items:
        assert item.reason == reasons[Work(item.setup, item.kernel, item.slot)]
        (mine,) = [f for f in facts if (f.job, f.label) == (item.job, item.episode_id)]
        stands = standing(mine)
        assert stands.submission is not None
        assert (stands.place == "promotion", stands.submission.grade_id) == (item.promoted, item.grade_id)


def _write(conn: sqlite3.Connection, job: int, told_episode: Any) -> None:
    problem, returncode, cancelled, start, grades = told_episode
    who = episode(problem, job)
    put(conn, who, grade(who, "score", 1, correct=False, status="incorrect"))
    for kind, status, ts_ms, has_text, its_final in grades:
        columns: dict[str, Any] = {"status": status, "correct": {"ok": True, "incorrect": False}.get(status)}
        if not has_text:
            columns["text"] = None
        one = grade(who, kind, ts_ms, **columns)
        accepted = status == "ok" and kind != "score" and its_final is not None
        put(conn, who, one, final(who, ts_ms, **its_final) if accepted else None)
    conn.execute(
        "UPDATE episodes SET returncode = ?, cancelled = ?, final_attempt_start_ms = ? WHERE job = ?",
        (returncode, int(cancelled), start, job),
    )


def test_the_judge_of_these_tests_divides_by_c() -> None:
    assert {RULE.denominators[kernel] for kernel in KERNELS} == {"c"}
    assert judge().grading.seal
