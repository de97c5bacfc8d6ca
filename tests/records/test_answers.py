"""Which submission answers, with what score, and the numbers a setup is summarised by."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from pathlib import Path

import pytest
from records_help import SETUP, episode, grade, submit  # type: ignore[import-not-found, unused-ignore]
from rich.console import Console

from hpcagent_bench.owed import Work
from hpcagent_bench.report import figure, table
from hpcagent_bench.results_db import create, record
from hpcagent_bench.stats.population import answer, answers, setup_kernel_answers, token_total
from hpcagent_bench.stats.summary import BILLED, summarise
from hpcagent_bench.studies import EpisodeFacts, Final, Submission

WORK = Work("s", "k")


def solved(score: float, ts: int = 10) -> Submission:
    return Submission(ts, speedup=score, final=Final("graded", credited=score))


def facts(*submissions: Submission, work: Work = WORK, **more: object) -> EpisodeFacts:
    return dataclasses.replace(EpisodeFacts(work, 1, "e", submissions=submissions), **more)  # type: ignore[arg-type]


REFUSED = Submission(20, status="incorrect", speedup=3.0, reason="input 0: wrong")
SUSPECT = Submission(20, speedup=9e9, suspect=True)
UNSOLVED = Submission(20, speedup=2.0, final=Final("unsolved", "input 2: crash"))


@pytest.mark.parametrize(
    ("submissions", "state", "score"),
    [
        ((solved(2.0), solved(1.5, 20)), "solved", 1.5),
        ((solved(1.5, 20), solved(2.0)), "solved", 1.5),
        ((solved(2.0), REFUSED), "solved", 2.0),
        ((solved(2.0), SUSPECT), "solved", 2.0),
        ((solved(0.25),), "solved", 0.25),
        ((solved(2.0), UNSOLVED), "unsolved", 1.0),
        ((REFUSED,), "unsolved", 1.0),
        ((SUSPECT,), "unsolved", 1.0),
        ((Submission(20, speedup=2.0),), "ungraded", 1.0),
        ((Submission(20, status="score_error", speedup=0.0),), "unanswered", 1.0),
        ((dataclasses.replace(solved(2.0), disqualified=True),), "unanswered", 1.0),
        ((), "unanswered", 1.0),
    ],
)
def test_the_last_accepted_plausible_submission_is_the_answer(
    submissions: tuple[Submission, ...], state: str, score: float
) -> None:
    found = answer(facts(*submissions))
    assert (found.state, found.score) == (state, score)


def test_the_episode_with_the_newest_valid_submission_answers() -> None:
    older = facts(solved(2.0, 10), job=1, final_attempt_start_ms=5)
    newer = facts(solved(3.0, 30), job=2, final_attempt_start_ms=25)
    empty = facts(job=3, final_attempt_start_ms=90)
    cancelled = facts(solved(9.0, 99), job=4, cancelled=True)
    refused = facts(dataclasses.replace(REFUSED, ts_ms=95), job=5, final_attempt_start_ms=94)
    found = answers([newer, older, empty, cancelled, refused])
    assert (found[WORK].score, found[WORK].episode.job) == (3.0, 2)
    assert answers([older, empty])[WORK].score == 2.0
    assert answers([empty, facts(REFUSED, job=9)])[WORK].status == "incorrect"
    assert answers([cancelled]) == {}


def test_slots_give_their_median_and_the_lower_middle_run_is_carried() -> None:
    slots = [Work("s", "k", n) for n in (1, 2, 3, 4, 5)]
    scores = (4.0, 1.0, 2.0, 8.0)
    found = answers([facts(solved(s), work=w) for s, w in zip(scores, slots, strict=False)])
    one = setup_kernel_answers(slots, found, BILLED)["s", "k"]
    assert (one.score, one.solved_slots, one.slots) == (3.0, 4, 5)
    assert one.carried is not None
    assert one.carried.score == 2.0


def test_a_setup_reports_rate_and_both_geometric_means() -> None:
    kernels = [Work("s", k) for k in "abcd"]
    history = [facts(solved(s), work=w) for s, w in zip((2.0, 8.0), kernels, strict=False)]
    history.append(facts(REFUSED, work=kernels[2]))
    (row,) = summarise(kernels, answers(history))
    assert (row.tasks, row.solved, row.answered, row.rate) == (4, 2, 3, 0.5)
    assert row.gm == pytest.approx(4.0)
    assert row.gm_all == pytest.approx(2.0)
    assert (row.gm_tokens, row.token_kernels) == (None, 0)


def test_tokens_are_priced_with_the_card_and_none_is_not_zero() -> None:
    counted = facts(
        fresh_input_tokens=100, cached_input_tokens=1000, output_tokens=50, output_source="result"
    )
    assert token_total(counted, BILLED) == 100 + 0.1 * 1000 + 50
    assert token_total(dataclasses.replace(counted, output_source="none"), BILLED) is None
    assert token_total(dataclasses.replace(counted, output_tokens=None), BILLED) is None
    zero = dataclasses.replace(counted, fresh_input_tokens=0, cached_input_tokens=0, output_tokens=0)
    assert token_total(zero, BILLED) is None
    (row,) = summarise([WORK], answers([counted]))
    assert (row.mean_tokens, row.token_kernels) == (250.0, 1)
    assert row.gm_tokens == pytest.approx(250.0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four designed kernels: solved at 2, wrong, running, never run."""
    conn = create(tmp_path / "results.db")
    submit(conn, episode(0))
    wrong = grade("k1", status="incorrect", correct=False, reason="input odd: out[3] = 7")
    record(conn, SETUP, episode(1), wrong)
    designed = [{"setup": SETUP.setup, "kernel": f"k{n}", "slot": 1} for n in range(4)]
    (tmp_path / "plan.json").write_text(json.dumps({"designed": designed}))
    return tmp_path


FLYING = [Work(SETUP.setup, "k2")]


def test_the_table_says_for_every_kernel_what_it_got_or_waits_for(run: Path) -> None:
    console = Console(width=100, file=io.StringIO(), record=True)
    table.render(run, console, in_flight=FLYING)
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["│", "k0", "│", "solved", "2.000", "│"] in rows
    assert ["│", "k1", "│", "incorrect", "1.000", "│"] in rows
    assert ["│", "k2", "│", "in", "flight", "–", "│"] in rows
    assert ["│", "k3", "│", "owed", "new", "–", "│"] in rows
    summary = ["│", SETUP.setup, "│", "1/4", "│", "0.25", "│", "2.000", "│", "1.189", "│", "–", "│", "1", "│"]
    assert summary in rows
    assert ["unsolved", "quick-c-auto", "k1", "incorrect:", "input", "odd:", "out[3]", "=", "7"] in rows


def test_setups_that_have_not_begun_get_no_column(run: Path) -> None:
    console = Console(width=100, file=io.StringIO(), record=True)
    untouched = [Work("quick-other", f"k{number}") for number in range(4)]
    designed = [*(Work(SETUP.setup, f"k{number}") for number in range(4)), *untouched]
    table.render(run, console, designed, in_flight=FLYING)
    text = console.export_text()
    assert "setups that have not begun: 1" in text
    assert text.count("quick-other") == 2  # in the table of setups, and why it is owed


def test_json_holds_full_precision_and_null_for_missing(run: Path) -> None:
    told = json.loads(json.dumps(table.to_json(run, in_flight=FLYING)))
    assert [task["score"] for task in told["tasks"]] == [2.0, 1.0, None, None]
    assert [task["state"] for task in told["tasks"]] == ["solved", "unsolved", "unanswered", "unanswered"]
    assert told["setups"][0]["gm_all"] == pytest.approx(math.pow(2.0, 0.25), rel=1e-15)
    assert told["owed"] == [
        {"setup": SETUP.setup, "kernel": "k3", "slot": 1, "class": "new", "reason": "never run"}
    ]


def test_the_figure_is_written_with_the_table_of_what_it_shows(run: Path) -> None:
    found = figure.write(run, in_flight=FLYING)
    assert sorted(p.name for p in (run / "report").iterdir()) == [
        "results.json",
        "speedup.csv",
        "speedup.pdf",
        "speedup.png",
    ]
    assert found["png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert found["pdf"].read_bytes()[:5] == b"%PDF-"
    rows = list(csv.DictReader(found["csv"].open()))
    assert [(r["kernel"], r["speedup"], r["status"]) for r in rows] == [
        ("k0", "2.0", "solved"),
        ("k1", "", "incorrect"),
        ("k2", "", "unanswered"),
        ("k3", "", "unanswered"),
    ]


def test_a_run_without_results_or_plan_still_reports(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), record=True, width=200)
    table.render(tmp_path, console)
    assert "nothing recorded yet" in console.export_text()
    assert sorted(figure.write(tmp_path)) == ["csv", "json"]
    (tmp_path / "plan.json").write_text("{torn")
    submit(create(tmp_path / "results.db"), episode(5))
    assert [task["kernel"] for task in table.to_json(tmp_path)["tasks"]] == ["k5"]
