"""The owed planner, row by row of the delivery rule, and over random histories."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records_help import SETUP, episode, grade, submit  # type: ignore[import-not-found, unused-ignore]

from hpcagent_bench.episodes import episode_label, parse_label
from hpcagent_bench.owed import OwedPlan, Work, delivers, episode_facts, plan
from hpcagent_bench.results_db import Setup, create, record
from hpcagent_bench.studies import EpisodeFacts, Final, Submission, standing

WORK = Work("s", "k")
SOLVED = Submission(10, final=Final("graded", credited=1.5))


def facts(*submissions: Submission, **more: object) -> EpisodeFacts:
    return dataclasses.replace(EpisodeFacts(WORK, 1, "s.n0.p0.w0", submissions=submissions), **more)  # type: ignore[arg-type]


DELIVERED = {
    "credited": facts(SOLVED),
    "credited, agent stopped by its clock": facts(SOLVED, returncode=124),
    "credited, agent killed later": facts(SOLVED, returncode=-9),
    "wrong answer": facts(Submission(10, status="incorrect", reason="input 0: wrong")),
    "no build": facts(Submission(10, status="build_error")),
    "overfit": facts(Submission(10, status="overfit")),
    "timeout": facts(Submission(10, status="timeout")),
    "final says unsolved": facts(Submission(10, final=Final("unsolved", "input 1: crash"))),
    "implausible timing": facts(Submission(10, suspect=True)),
    "an earlier one counts": facts(SOLVED, Submission(20, status="score_error")),
    "promoted": facts(dataclasses.replace(SOLVED, kind="promoted")),
    "answered again after the task changed": facts(
        Submission(5, final=Final("unsolved", "task: reference changed")), SOLVED
    ),
}

OWED = {
    "never run": (None, "new", "never run"),
    "clock": (facts(returncode=124), "budget", "wall clock spent (rc 124)"),
    "tokens": (facts(returncode=125), "budget", "token cap spent (rc 125)"),
    "voided budget": (
        facts(Submission(9, status="timeout", reason="budget: old cap")),
        "budget",
        "budget: old cap",
    ),
    "cancelled": (facts(returncode=124, cancelled=True), "infra", "cancelled: the job ended under the agent"),
    "cancelled with an answer": (
        facts(SOLVED, cancelled=True),
        "infra",
        "cancelled: the job ended under the agent",
    ),
    "clean end": (facts(returncode=0), "infra", "agent ended cleanly without a graded submission (rc 0)"),
    "marker": (facts(returncode=123), "infra", "submission marker without a grade (rc 123)"),
    "context": (facts(returncode=126), "infra", "context window overflow (rc 126)"),
    "api": (facts(returncode=127), "infra", "model API timeout (rc 127)"),
    "crash": (facts(returncode=1), "infra", "the agent crashed (rc 1)"),
    "no end": (facts(), "infra", "the episode left no end record"),
    "judge fault": (
        facts(Submission(9, status="score_error", reason="c lost")),
        "infra",
        "judge fault: c lost",
    ),
    "voided infra": (
        facts(Submission(9, status="incorrect", reason="infra: bad node")),
        "infra",
        "infra: bad node",
    ),
    "disqualified": (
        facts(dataclasses.replace(SOLVED, disqualified=True)),
        "infra",
        "its submission was disqualified",
    ),
    "no final and nothing to grade": (
        facts(Submission(9, has_source=False)),
        "infra",
        "its submission has no final grade, and its library is not kept",
    ),
    "before relaunch": (
        facts(SOLVED, final_attempt_start_ms=11, returncode=1),
        "infra",
        "the agent crashed (rc 1)",
    ),
    "task changed": (
        facts(SOLVED, Submission(11, final=Final("unsolved", "task: args"))),
        "task",
        "task: args",
    ),
}


PREVIEW = Submission(5, "score", speedup=2.0)
FAULT = Submission(9, status="score_error", reason="infra: node drifts")

UNGRADED = {
    "no final": (facts(Submission(9)), "its submission has no final grade"),
    "final faulted": (facts(Submission(9, final=Final("error", "oom"))), "judge fault: oom"),
    "a later one waits": (facts(SOLVED, Submission(20)), "its submission has no final grade"),
    "stale": (facts(dataclasses.replace(SOLVED, owed="older than a cut")), "older than a cut"),
    "refused by old grading": (
        facts(SOLVED, Submission(20, status="incorrect", reason="input 1: x", owed="older than a cut")),
        "older than a cut",
    ),
    "never submitted": (
        facts(correct_score=PREVIEW, returncode=124),
        "it never submitted its last correct source",
    ),
    "judge fault": (facts(FAULT, returncode=0), "judge fault: infra: node drifts"),
    "judge fault after a preview": (
        facts(FAULT, correct_score=PREVIEW, returncode=0),
        "judge fault: infra: node drifts",
    ),
}


@pytest.mark.parametrize("name", UNGRADED)
def test_an_answer_without_a_final_grade_is_owed_one_and_no_episode(name: str) -> None:
    episode_, reason = UNGRADED[name]
    found = plan([WORK], [episode_])
    assert (found.owed, found.delivered, found.in_flight) == ((), (), ())
    assert [(i.work, i.owed_class, i.reason) for i in found.ungraded] == [(WORK, "final", reason)]


@pytest.mark.parametrize(
    "episode_",
    [
        facts(correct_score=PREVIEW),  # it may be running still
        facts(correct_score=PREVIEW, returncode=124, cancelled=True),
        facts(correct_score=PREVIEW, returncode=123),  # its one submission was graded, and the grade lost
        facts(dataclasses.replace(FAULT, disqualified=True), correct_score=PREVIEW, returncode=0),
        facts(
            Submission(9, status="incorrect", reason="infra: bad node"), correct_score=PREVIEW, returncode=0
        ),
        facts(dataclasses.replace(FAULT, has_source=False), returncode=0),
    ],
)
def test_what_must_not_be_promoted_is_owed_an_episode(episode_: EpisodeFacts) -> None:
    found = plan([WORK], [episode_])
    assert (len(found.owed), found.ungraded) == (1, ())


def test_the_newest_judged_submission_decides_over_all_jobs() -> None:
    stale = dataclasses.replace(SOLVED, owed="older than a cut")
    done, old = facts(SOLVED, job=1), facts(dataclasses.replace(stale, ts_ms=5), job=2)
    newer = facts(dataclasses.replace(stale, ts_ms=50), job=3)
    unsubmitted = facts(correct_score=dataclasses.replace(PREVIEW, ts_ms=99), returncode=0, job=4)
    assert plan([WORK], [old, done, unsubmitted]).delivered == (WORK,)
    assert [i.reason for i in plan([WORK], [done, newer, old]).ungraded] == ["older than a cut"]
    assert plan([WORK], [newer], in_flight=[WORK]).in_flight == (WORK,)


@pytest.mark.parametrize("name", DELIVERED)
def test_delivered(name: str) -> None:
    assert plan([WORK], [DELIVERED[name]]) == OwedPlan((), (WORK,), ())


@pytest.mark.parametrize("name", OWED)
def test_owed_with_class_and_reason(name: str) -> None:
    episode_, owed_class, reason = OWED[name]
    item = plan([WORK], [] if episode_ is None else [episode_]).owed[0]
    assert (item.work, item.owed_class, item.reason) == (WORK, owed_class, reason)


def test_any_job_may_deliver_and_the_latest_episode_gives_the_class() -> None:
    crash = facts(returncode=1, job=1, final_attempt_start_ms=100)
    spent = facts(returncode=124, job=2, final_attempt_start_ms=200)
    assert [plan([WORK], pair).owed[0].owed_class for pair in ([crash, spent], [spent, crash])] == [
        "budget"
    ] * 2
    assert plan([WORK], [spent, facts(SOLVED, job=0), crash]).delivered == (WORK,)


def test_slots_and_setups_are_separate_work_and_the_designs_order_is_kept() -> None:
    designed = [Work("b", "k", 2), Work("a", "k"), Work("b", "k"), Work("a", "k"), Work("b", "j")]
    done = dataclasses.replace(facts(SOLVED), work=Work("b", "k"))
    other = dataclasses.replace(facts(SOLVED), work=Work("z", "k"))
    found = plan(designed, [done, other], in_flight=[Work("a", "k"), Work("b", "k"), Work("q", "q")])
    assert [item.work for item in found.owed] == [Work("b", "k", 2), Work("b", "j")]
    assert (found.delivered, found.in_flight) == ((Work("b", "k"),), (Work("a", "k"),))


def test_work_an_ended_job_was_given_is_lost_rather_than_new() -> None:
    item = plan([WORK], [], attempted=[WORK]).owed[0]
    assert (item.owed_class, item.reason) == ("infra", "a job was given it and left no episode")


def test_facts_leave_out_adhoc_foreign_and_earlier_attempts_rows(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    adhoc = dataclasses.replace(episode(0), label="adhoc")
    for who in (adhoc, episode(0), episode(1), episode(2)):
        submit(conn, who)
    record(conn, SETUP, episode(0), grade("k1", ts_ms=3000, status="incorrect", correct=False))
    record(conn, SETUP, episode(1), grade("k1", "score", ts_ms=3000))
    conn.execute("UPDATE episodes SET final_attempt_start_ms = 2000 WHERE kernel = 'k1'")
    conn.execute(
        "INSERT INTO disqualifications SELECT id, 'x', 1 FROM grades WHERE kernel = 'k2' AND kind = 'submit'"
    )
    found = {f.work.kernel: f for f in episode_facts(tmp_path / "a.db")}
    assert {k: [delivers(f), len(f.submissions), f.scores] for k, f in found.items()} == {
        "k0": [True, 1, 0],
        "k1": [False, 0, 1],
        "k2": [False, 1, 0],
    }
    assert found["k0"].submissions[0].score == 2.0
    assert episode_facts(tmp_path / "none.db") == []


def test_episode_labels_are_written_and_read_back() -> None:
    assert episode_label("llr40-x-c", 2, 17, 3) == "llr40-x-c.n2.p17.w3"
    assert episode_label("llr40-x-c", 2, 17, 3, slot=4) == "llr40-x-c.n2.p17.w3.s4"
    parts = parse_label("a.n1.b.n2.p17.w3.s4")
    assert parts is not None
    assert dataclasses.astuple(parts) == ("a.n1.b", 2, "17", 3, 4)
    assert parse_label("adhoc") is None
    assert Setup("x").packet == ""


WORKS = st.builds(Work, st.sampled_from("ab"), st.sampled_from("kj"), st.integers(1, 2))
SUBMISSIONS = st.builds(
    Submission,
    ts_ms=st.integers(1, 9),
    status=st.sampled_from(["ok", "incorrect", "score_error"]),
    reason=st.sampled_from([None, "infra: x", "budget: x"]),
    disqualified=st.booleans(),
    owed=st.sampled_from(["", "", "older than a cut"]),
    has_source=st.booleans(),
    final=st.none()
    | st.builds(
        Final,
        st.sampled_from(["graded", "error"]),
        st.sampled_from([None, "task: x"]),
        st.none() | st.just(2.0),
    ),
)
EPISODES = st.builds(
    EpisodeFacts,
    WORKS,
    returncode=st.none() | st.sampled_from([0, 1, 123, 124]),
    cancelled=st.booleans(),
    final_attempt_start_ms=st.none() | st.integers(1, 9),
    submissions=st.lists(SUBMISSIONS, max_size=3).map(tuple),
    correct_score=st.none() | st.builds(Submission, st.integers(1, 9), st.just("score")),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(WORKS, max_size=8), st.lists(EPISODES, max_size=8), st.sets(WORKS, max_size=3), st.randoms())
def test_every_history_splits_the_design_and_more_answers_never_owe_more(
    designed: list[Work], history: list[EpisodeFacts], flying: set[Work], rng: object
) -> None:
    found = plan(designed, history, flying)
    ungraded = [item.work for item in found.ungraded]
    parts = [[item.work for item in found.owed], [*found.delivered], [*found.in_flight], ungraded]
    assert sorted(work for part in parts for work in part) == sorted(set(designed))
    assert not flying & set(parts[0])
    shuffled = history[:]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    again = plan(designed, shuffled, flying)
    assert (again.delivered, again.in_flight) == (found.delivered, found.in_flight)
    newest = dataclasses.replace(SOLVED, ts_ms=99)
    answers = [dataclasses.replace(facts(newest), work=work) for work in [*parts[0], *ungraded]]
    answered = plan(designed, history + answers, flying)
    assert (answered.owed, answered.ungraded) == ((), ())
    assert set(found.delivered) <= {e.work for e in history if delivers(e)}
    answering_ = {e.work for e in history if standing(e).place != "none"} & set(designed)
    assert answering_ == (set(parts[1]) | set(ungraded) | (answering_ & flying))
