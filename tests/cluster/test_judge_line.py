"""Who waits for the judge: turns, positions, a bounded line, repeated requests, and clients that go away."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_rig import Judge, file_token

from hpcagent_bench import translators
from hpcagent_bench.cluster.line import Full, Line
from hpcagent_bench.corpus import spec

KERNEL = "tsvc_2_vtvtv"
SLOW = (
    "#include <stdint.h>\n#include <unistd.h>\n"
    "void tsvc_2_vtvtv_fp64(double *a, const double *b, const double *c, const int64_t n, uint8_t *w, "
    "const int64_t s) { usleep(200000); for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i]; }\n"
)
CLIENTS = 50


class Gate:
    """A line whose first piece of work holds it until opened."""

    def __init__(self, most: int = 100) -> None:
        self.line = Line(most)
        self.done: list[str] = []
        self._open, self._begun = threading.Event(), threading.Event()
        self.first = self.line.put("first", self._hold)
        assert self._begun.wait(10)

    def _hold(self) -> None:
        self._begun.set()
        self._open.wait()

    def put(self, who: str, name: str, **more: Any) -> Future[Any]:
        return self.line.put(who, lambda: self.done.append(name), name=name, **more)

    def open(self) -> None:
        self._open.set()


def test_those_who_wait_take_turns() -> None:
    gate = Gate()
    futures = [gate.put(who, f"{who}{n}") for who in "aaab" for n in "0"]
    futures += [gate.put("c", "c0"), gate.put("b", "b1")]
    gate.open()
    for future in futures:
        future.result(10)
    assert gate.done == ["a0", "b0", "c0", "a0", "b1", "a0"]
    gate.line.close()


def test_a_position_counts_who_goes_before() -> None:
    gate = Gate()
    for who, name in [("a", "a0"), ("a", "a1"), ("b", "b0"), ("c", "c0"), ("b", "b1")]:
        gate.put(who, name)
    expected = {"a0": 1, "b0": 2, "c0": 3, "a1": 4, "b1": 5}
    assert {name: gate.line.position(name[0], name) for name in expected} == expected
    assert gate.line.position("first") == 0
    assert gate.line.position("b") == 2
    assert gate.line.position("d") is None
    assert gate.line.position("a", "unknown") is None
    assert gate.line.waiting == 6
    gate.open()
    gate.line.close()


def test_a_full_line_takes_no_more_and_forgets_nobody() -> None:
    gate = Gate(most=3)
    kept = [gate.put("a", "a0", most_own=2), gate.put("a", "a1", most_own=2)]
    with pytest.raises(Full):
        gate.put("a", "a2", most_own=2)
    kept.append(gate.put("b", "b0", most_own=2))
    with pytest.raises(Full) as caught:
        gate.put("c", "c0", most_own=2)
    assert caught.value.waiting == 3
    gate.open()
    for future in kept:
        future.result(10)
    assert gate.done == ["a0", "b0", "a1"]
    gate.line.close()
    with pytest.raises(RuntimeError):
        gate.put("a", "late")


def test_work_that_fails_holds_nobody_up() -> None:
    line = Line(10)

    def fail() -> None:
        raise ValueError("no")

    failed = line.put("a", fail)
    with pytest.raises(ValueError, match="no"):
        failed.result(10)
    assert line.put("a", lambda: 3).result(10) == 3
    assert line.waiting == 0
    line.close()


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    for worker in range(10):
        file_token(tmp_path, f"t{worker}", KERNEL, "multi", worker=worker)
    file_token(tmp_path, "single", KERNEL, "single", worker=10)
    made = Judge(tmp_path, settings={"service.max_waiting": CLIENTS, "service.body_timeout_s": 1.0})
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait()


def rows(judge: Judge, sql: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(f"file:{judge.shard}?mode=ro", uri=True)) as conn:
        return conn.execute(sql).fetchall()


def health(judge: Judge, token: str = "", **query: str) -> dict[str, Any]:
    header = {"Authorization": f"Bearer {token}"} if token else {}
    answer: dict[str, Any] = httpx.get(judge.url + "/health", headers=header, params=query, timeout=30).json()
    return answer


def until_waiting(judge: Judge, count: int) -> None:
    deadline = time.monotonic() + 60
    while health(judge)["waiting"] < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_fifty_clients_at_once_are_all_answered_and_recorded(judge: Judge) -> None:
    """None is turned away, each sees where it stands, and every answer is that of its own grade.

    Every fifth source is right, the others do not build, which is graded sooner.
    """
    source = translators.emit(spec.load(KERNEL), "c")
    positions: set[int] = set()
    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = [
            clients.submit(
                judge.post,
                "/score",
                f"t{n % 10}",
                KERNEL,
                f"{source}/* {n} */" if n % 5 == 0 else f"error {n};",
                request_id=f"client-{n}",
            )
            for n in range(CLIENTS)
        ]
        until_waiting(judge, CLIENTS // 2)
        for worker in range(10):
            told = health(judge, f"t{worker}")
            positions.add(told.get("position", -1))
        bodies = [answer.result().json() for answer in answers]
    assert [body["request_id"] for body in bodies] == [f"client-{n}" for n in range(CLIENTS)]
    assert [body["correct"] for body in bodies] == [n % 5 == 0 for n in range(CLIENTS)]
    assert all(str(n) in body["build_log"] for n, body in enumerate(bodies) if n % 5)
    assert len(positions) > 1
    assert rows(judge, "SELECT count(*), count(DISTINCT request_id) FROM grades") == [(CLIENTS, CLIENTS)]
    assert health(judge)["waiting"] == 0


def test_beyond_the_bound_a_request_is_told_when_to_try_again(judge: Judge) -> None:
    clients = ThreadPoolExecutor(CLIENTS + 1)
    for n in range(CLIENTS + 1):
        clients.submit(_ignore, judge, f"t{n % 10}")
    until_waiting(judge, CLIENTS + 1)
    refused = judge.post("/score", "t0", KERNEL)
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.json()["waiting"] == CLIENTS
    assert health(judge)["status"] == "ok"
    judge.process.kill()
    clients.shutdown()


def _ignore(judge: Judge, token: str) -> None:
    with contextlib.suppress(httpx.HTTPError):
        judge.post("/score", token, KERNEL, SLOW)


def test_a_repeated_request_is_answered_by_the_same_grade(judge: Judge) -> None:
    first = judge.post("/submit", "single", KERNEL, request_id="mine")
    assert first.json() == {"correct": "yes", "request_id": "mine"}
    assert judge.post("/submit", "single", KERNEL, request_id="mine").json() == first.json()
    assert judge.post("/submit", "single", KERNEL, request_id="other").status_code == 409
    other = judge.post("/submit", "single", KERNEL, "something else", request_id="mine")
    assert (other.status_code, "request_id" in other.json()["error"]) == (400, True)
    scored = judge.post("/score", "t0", KERNEL, request_id="mine").json()
    assert judge.post("/score", "t0", KERNEL, request_id="mine").json() == scored
    assert judge.post("/score", "t1", KERNEL, request_id="mine").json()["native_ns"] != scored["native_ns"]
    kinds = rows(judge, "SELECT kind, count(*) FROM grades GROUP BY kind ORDER BY kind")
    assert kinds == [("final", 1), ("score", 2), ("submit", 1)]


def test_the_same_request_twice_at_once_is_graded_once(judge: Judge) -> None:
    with ThreadPoolExecutor(2) as clients:
        asked = [
            clients.submit(judge.post, "/submit", "single", KERNEL, SLOW, request_id="same") for _ in range(2)
        ]
        bodies = [answer.result().json() for answer in asked]
    assert bodies == [{"correct": "yes", "request_id": "same"}] * 2
    assert rows(judge, "SELECT count(*) FROM grades WHERE kind = 'submit'") == [(1,)]


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "answer lost"])
def test_after_a_restart_the_key_still_answers(judge: Judge, lost: bool) -> None:
    """Also when the judge died between recording the grade and keeping its answer."""
    answer = judge.post("/submit", "single", KERNEL, "broken", request_id="mine")
    assert answer.json()["correct"] == "no"
    judge.process.kill()
    judge.process.wait()
    kept = list((judge.shard.parent / "answers").iterdir())
    assert len(kept) == 1
    if lost:
        kept[0].unlink()
    again = Judge(judge.run_dir)
    try:
        told = again.post("/submit", "single", KERNEL, "broken", request_id="mine").json()
        assert {key: told[key] for key in ("correct", "request_id")} == {
            "correct": "no",
            "request_id": "mine",
        }
        assert rows(again, "SELECT count(*) FROM grades") == [(1,)]
    finally:
        again.end()


def test_a_grade_cut_by_a_kill_is_made_when_asked_again(judge: Judge) -> None:
    with ThreadPoolExecutor(1) as clients:
        clients.submit(_ignore_submit, judge)
        until_waiting(judge, 1)
        time.sleep(0.5)
        judge.process.kill()
        judge.process.wait()
    again = Judge(judge.run_dir)
    try:
        told = again.post("/submit", "single", KERNEL, SLOW, request_id="cut").json()
        assert told == {"correct": "yes", "request_id": "cut"}
        assert rows(again, "SELECT count(*) FROM grades WHERE kind = 'submit'") == [(1,)]
    finally:
        again.end()


def _ignore_submit(judge: Judge) -> None:
    with contextlib.suppress(httpx.HTTPError):
        judge.post("/submit", "single", KERNEL, SLOW, request_id="cut")


def test_clients_that_hang_up_have_their_grades_recorded(judge: Judge) -> None:
    for n in range(2):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                judge.url + "/submit",
                json={"kernel": KERNEL, "rank": 0, "source": SLOW, "request_id": f"gone-{n}"},
                headers={"Authorization": f"Bearer t{n}"},
                timeout=0.5,
            )
    deadline = time.monotonic() + 120
    while rows(judge, "SELECT count(*) FROM grades WHERE kind = 'submit'") != [(2,)]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    told = judge.post("/submit", "t1", KERNEL, SLOW, request_id="gone-1").json()
    assert told == {"correct": "yes", "request_id": "gone-1"}


def test_answering_keeps_off_the_timed_core(judge: Judge) -> None:
    granted = os.sched_getaffinity(0)
    timed = max(granted)
    httpx.get(f"{judge.url}/task/{KERNEL}", params={"rank": 0}, headers={"Authorization": "Bearer t0"})
    judge.post("/score", "t0", KERNEL)
    threads = Path(f"/proc/{judge.process.pid}/task").iterdir()
    masks = {int(task.name): os.sched_getaffinity(int(task.name)) for task in threads}
    if len(granted) > 1:
        assert timed not in masks.pop(judge.process.pid)
        assert granted in masks.values()
    else:
        assert set(map(frozenset, masks.values())) == {frozenset(granted)}


def test_a_body_that_never_ends_is_cut_and_nobody_waits_for_it(judge: Judge) -> None:
    host, port = judge.url.removeprefix("http://").split(":")
    head = (
        "POST /score HTTP/1.1\r\nHost: judge\r\nAuthorization: Bearer t0\r\n"
        "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    )
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(head.encode())
        assert health(judge)["status"] == "ok"
        said = ""
        while not said.endswith("}") and (part := slow.recv(4096)):
            said += part.decode()
    assert said.startswith("HTTP/1.1 400")
    assert "did not arrive within 1 s" in said
    with socket.create_connection((host, int(port)), timeout=30) as gone:
        gone.sendall(head.encode())
    assert judge.post("/score", "t0", KERNEL).json()["correct"] is True
