"""A judge process over HTTP: what it answers, what it records, and what a kill leaves behind."""

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_rig import Judge, file_token

KERNEL = "tsvc_2_vtvtv"
SLOW = (
    "#include <stdint.h>\n#include <unistd.h>\n"
    "void tsvc_2_vtvtv_fp64(double *a, const double *b, const double *c, const int64_t n, uint8_t *w, "
    "const int64_t s) { usleep(200000); for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i]; }\n"
)


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    file_token(tmp_path, "one", KERNEL)
    file_token(tmp_path, "two", KERNEL, "multi", worker=1)
    made = Judge(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait()


def rows(judge: Judge, sql: str) -> list[Any]:
    with sqlite3.connect(f"file:{judge.shard}?mode=ro", uri=True) as conn:
        return conn.execute(sql).fetchall()


def test_submit_is_recorded_with_its_final_row_before_it_is_answered(judge: Judge) -> None:
    answer = judge.post("/submit", "one", KERNEL)
    assert answer.json()["correct"] == "yes"
    found = rows(judge, "SELECT kind, status, correct, timing_reduction, request_id FROM grades ORDER BY id")
    request_id = answer.json()["request_id"]
    assert found == [("submit", "ok", 1, "mw4x5", request_id), ("final", "graded", 1, "mw4x5", request_id)]
    credited = rows(judge, "SELECT credited_speedup FROM grades")
    assert credited[0] == credited[1]
    assert credited[0][0] > 0
    assert rows(judge, "SELECT count(*) FROM grade_cells") == [(8,)]


def test_score_tells_cells_and_enters_nothing(judge: Judge) -> None:
    answer = judge.post("/score", "one", KERNEL).json()
    assert answer["correct"] is True
    assert [set(cell) >= {"label", "ratio", "p_value", "significant"} for cell in answer["cells"]] == [
        True
    ] * 2
    assert rows(judge, "SELECT kind, credited_speedup, score_rule FROM grades") == [("score", None, None)]


def test_baseline_tells_the_time_to_beat(judge: Judge) -> None:
    header = {"Authorization": "Bearer one"}
    url = f"{judge.url}/baseline/{KERNEL}"
    told = httpx.get(url, params={"rank": 0}, headers=header, timeout=120).json()
    assert (told["kernel"], told["preset"], told["baseline"]) == (KERNEL, "tiny", "c")
    assert told["baselines"]["c"] > 0
    assert rows(judge, "SELECT count(*) FROM grades") == [(0,)]


def test_second_submission_is_409_and_survives_a_restart(judge: Judge) -> None:
    assert judge.post("/submit", "one", KERNEL, "broken").status_code == 200
    assert judge.post("/submit", "one", KERNEL).status_code == 409
    judge.end()
    again = Judge(judge.run_dir)
    try:
        assert again.post("/submit", "one", KERNEL).status_code == 409
        assert again.post("/submit", "two", KERNEL).json()["correct"] == "yes"
    finally:
        again.end()


def test_refused_request_does_not_spend_the_submission(judge: Judge) -> None:
    assert judge.post("/submit", "one", KERNEL, build=["-lnothing"]).status_code == 400
    assert judge.post("/submit", "one", KERNEL).json()["correct"] == "yes"


def test_client_that_hangs_up_still_gets_its_grade_recorded(judge: Judge) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            judge.url + "/submit",
            json={"kernel": KERNEL, "rank": 0, "source": SLOW},
            headers={"Authorization": "Bearer two"},
            timeout=0.3,
        )
    deadline = time.monotonic() + 120
    while not rows(judge, "SELECT 1 FROM grades WHERE kind = 'submit'"):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_kill_in_mid_grade_leaves_no_half_row_and_the_next_judge_grades_on(judge: Judge) -> None:
    thread = threading.Thread(target=lambda: _ignore(lambda: judge.post("/submit", "one", KERNEL, SLOW)))
    thread.start()
    time.sleep(1.5)
    judge.process.send_signal(signal.SIGKILL)
    judge.process.wait()
    thread.join()
    assert rows(judge, "SELECT count(*) FROM grades") == [(0,)]
    work = judge.shard.parent / "work"
    assert list(work.iterdir())
    again = Judge(judge.run_dir)
    try:
        assert list(work.iterdir()) == []
        assert again.post("/submit", "one", KERNEL).json()["correct"] == "yes"
        assert rows(again, "SELECT count(*) FROM grades") == [(2,)]
    finally:
        again.end()
    assert not work.exists()


def _ignore(call: Any) -> None:
    try:
        call()
    except httpx.HTTPError:
        return
