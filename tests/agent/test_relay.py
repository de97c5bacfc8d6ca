"""The relay on its unix socket: what it forwards, what it refuses, what it remembers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_rig import TOKEN, YES, FakeJudge
from hpcagent_agent.driver.seal_relay import MAX_CONNECTIONS, Relay


@pytest.fixture
def relay(judge: FakeJudge, tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "s", judge.url, TOKEN, "single", tmp_path / "spent", 30.0)
    yield relay
    relay.close()


@pytest.fixture
def agent(relay: Relay) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(uds=str(relay.socket_path))
    with httpx.Client(transport=transport, base_url="http://judge", timeout=20) as client:
        yield client


def test_a_forged_token_is_replaced(agent: httpx.Client, judge: FakeJudge) -> None:
    headers = {"Authorization": "Bearer forged", "X-Forwarded-For": "1.2.3.4"}
    assert agent.get("/baseline/tsvc_2_s311?language=c&rank=0", headers=headers).status_code == 200
    assert judge.requests[0]["auth"] == f"Bearer {TOKEN}"
    assert judge.requests[0]["path"] == "/baseline/tsvc_2_s311"


def test_bodies_pass_unchanged_and_errors_come_back(agent: httpx.Client, judge: FakeJudge) -> None:
    judge.script["/score"] = [(400, {"error": "malformed JSON"})]
    answer = agent.post("/score", content=b"{not json \xff")
    assert (answer.status_code, answer.json()) == (400, {"error": "malformed JSON"})
    assert judge.requests[0]["raw"] == b"{not json \xff"


@pytest.mark.parametrize("target", ["//evil/submit", "/../x", "/a/..", "/%2e%2e/x", "/", "/a%0d%0ab", "*"])
def test_odd_routes_are_refused_here(relay: Relay, judge: FakeJudge, target: str) -> None:
    assert relay.answer("POST", target, b"{}").status == 404
    assert judge.requests == []


@pytest.mark.parametrize("route", ["/submit", "/oracle", "/submit/", "/%73ubmit?x=1"])
def test_every_spelling_of_submit_is_the_one_submission(relay: Relay, judge: FakeJudge, route: str) -> None:
    assert relay.answer("POST", route, b"{}").json() == YES
    assert relay.spent.is_set()
    assert relay.answer("POST", "/submit", b"{}").status == 409
    assert len(judge.requests) == 1


@pytest.mark.parametrize("name", ["promoted-unsubmitted", "harvested-workspace"])
def test_an_agent_cannot_pass_for_the_driver(relay: Relay, judge: FakeJudge, name: str) -> None:
    assert relay.answer("POST", "/submit", f'{{"source": "x", "optimizer": "{name}"}}'.encode()).status == 400
    assert (judge.requests, relay.spent.is_set()) == ([], False)
    assert relay.submit({"source": "x"}, name).status == 200
    assert (judge.posts("/submit")[0]["optimizer"], relay.spent.is_set()) == (name, False)


def test_concurrent_submissions_are_one(relay: Relay, judge: FakeJudge) -> None:
    judge.delay_s = 0.5
    statuses: list[int] = []
    post = lambda: statuses.append(relay.answer("POST", "/submit", b"{}").status)  # noqa: E731
    threads = [threading.Thread(target=post) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409, 409, 409, 409]


def test_scores_are_remembered_for_one_attempt(relay: Relay, judge: FakeJudge) -> None:
    relay.begin_attempt()
    relay.answer("POST", "/score", b'{"source": "a"}')
    judge.script["/score"] = [(200, {"correct": False})]
    relay.answer("POST", "/score", b'{"source": "b"}')
    assert relay.last_correct == {"source": "a"}
    relay.begin_attempt()
    assert relay.last_correct is None


def _raw(relay: Relay, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(20)
        raw.connect(str(relay.socket_path))
        raw.sendall(data)
        return raw.recv(4096)


def test_bodies_without_or_beyond_a_length_are_refused(relay: Relay, judge: FakeJudge) -> None:
    def status(*headers: str) -> Any:
        return _raw(relay, "\r\n".join(["POST /score HTTP/1.1", *headers, "", ""]).encode()).split()[1]

    assert status("Transfer-Encoding: chunked") == b"411"
    assert status("Content-Length: -1") == b"411"
    assert status("Content-Length: 17000000") == b"413"
    assert status("Content-Length: 99999999999999999999") == b"413"
    assert judge.requests == []


def test_idle_connections_do_not_starve_the_driver(relay: Relay, judge: FakeJudge) -> None:
    idle = [socket.socket(socket.AF_UNIX) for _ in range(3 * MAX_CONNECTIONS)]
    before = threading.active_count()
    for one in idle:
        one.connect(str(relay.socket_path))
        one.settimeout(20)
    assert idle[-1].recv(1) == b""  # one too many: hung up on
    assert threading.active_count() - before <= MAX_CONNECTIONS
    for one in idle:
        one.close()


def test_a_judge_that_is_gone_is_a_502(relay: Relay, judge: FakeJudge) -> None:
    judge.close()
    assert relay.answer("GET", "/health", b"").status == 502
