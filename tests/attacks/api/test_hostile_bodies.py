"""Bodies and headers meant to exhaust or confuse the judge: each is a 4xx in one line, or a closed line."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from urllib.parse import urlparse

import httpx
import pytest
from attack_api import KERNEL, World, source

GOOD = {"kernel": KERNEL, "language": "c", "rank": 0}
BODIES = {
    "nested arrays": b"[" * 200_000,
    "nested objects": b'{"a":' * 200_000,
    "a number of a million digits": b'{"rank": ' + b"9" * 1_000_000 + b"}",
    "not a number": b'{"rank": NaN}',
    "endless": b'{"rank": 1e999}',
    "utf-16": json.dumps(GOOD).encode("utf-16"),
    "null": b"null",
    "zero bytes": b"\0" * 1000,
}


def raw(world: World, request: bytes, *, more: Iterable[bytes] = (), wait_s: float = 20) -> bytes:
    """Send bytes as they are; the head of what comes back (empty: the judge closed the line)."""
    place = urlparse(world.url)
    with socket.create_connection((place.hostname, place.port), timeout=wait_s) as line:
        try:
            line.sendall(request)
            for part in more:
                line.sendall(part)
            return line.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def head(token: str, *lines: str) -> bytes:
    fixed = ("POST /submit HTTP/1.1", "Host: judge", f"Authorization: Bearer {token}")
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 400


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_that_is_no_request_is_400_in_one_line(world: World, kind: str) -> None:
    answer = httpx.post(
        world.url + "/submit",
        content=BODIES[kind],
        headers={"Authorization": f"Bearer {world.worker()}"},
        timeout=60,
    )
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
    assert len(answer.text) < 1000


def test_an_endless_body_is_cut_off(world: World) -> None:
    request = head(world.worker(), "Transfer-Encoding: chunked")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    answer = raw(world, request, more=(chunk for _ in range(200)))
    assert status(answer) == 400


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 1000000000000",),
        ("Content-Length: -1",),
        ("Content-Length: abc",),
        ("Content-Length: 4", "Content-Length: 400"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Content-Length: 2", "Content-Encoding: gzip"),
        ("Expect: nothing", "Content-Length: 2"),
    ],
    ids=str,
)
def test_lengths_that_lie_are_4xx_or_a_closed_line(world: World, lines: tuple[str, ...]) -> None:
    answer = raw(world, head(world.worker(), *lines) + b"{}\r\n0\r\n\r\n")
    assert 400 <= status(answer) < 500


def test_headers_without_end_are_refused(world: World) -> None:
    request = head(world.worker(), *(f"X-{k}: {'y' * 1000}" for k in range(3000)), "Content-Length: 2")
    answer = raw(world, request + b"{}")
    assert 400 <= status(answer) < 500


def test_two_authorizations_do_not_make_one_worker_another(world: World) -> None:
    mine, other = world.worker(), world.worker()
    body = json.dumps({**GOOD, "source": "broken"}).encode()
    raw(world, head(mine, f"Authorization: Bearer {other}", f"Content-Length: {len(body)}") + body)
    graded = [world.graded(mine), world.graded(other)]
    assert sum(bool(rows) for rows in graded) <= 1


def test_a_client_that_sends_byte_by_byte_holds_nobody_up(world: World) -> None:
    place = urlparse(world.url)
    slow = [socket.create_connection((place.hostname, place.port)) for _ in range(30)]
    try:
        for line in slow:
            line.sendall(head(world.worker(), "Content-Length: 100000") + b"{")
        assert world.ask("/score", world.worker(), source="broken").json()["status"] == "build_error"
    finally:
        for line in slow:
            line.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "a\ud800b"},
        {"source": "int x;\0"},
        {"kernel": "../../etc/passwd"},
        {"kernel": KERNEL + "\0"},
        {"kernel": "x" * 100_000},
        {"language": ["c"]},
        {"rank": 10**30},
        {"rank": "0" * 5000},
        {"rank": 0.0},
        {"build": ["-D" + "x" * 100_000]},
        {"build": [[]]},
        {"tokens": 10**40, "source": "broken"},
        {"tokens": -5, "source": "broken"},
        {"optimizer": "\ud800" * 9, "source": "broken"},
        {"workspace_bytes": 1.5},
        {"compiler": {"a": 1}},
    ],
    ids=lambda fields: json.dumps(fields)[:40],
)
def test_odd_values_of_fields_are_no_judge_error(world: World, fields: dict[str, object]) -> None:
    answer = httpx.post(
        world.url + "/score",
        content=json.dumps({**GOOD, "source": "broken", **fields}),
        headers={"Authorization": f"Bearer {world.worker()}"},
        timeout=60,
    )
    assert answer.status_code in (200, 400, 404, 421)
    if answer.status_code == 200:
        assert answer.json()["status"] == "build_error"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"source": ""},
        {"source": " \n\t"},
        {"source": "/* nothing */"},
        {"source": "int x;"},
        {"source": None},
        {"source_file": ""},
        {"library": ""},
        {"kernel": "", "source": "int x;"},
        {"source": "int x;", "build": [""]},
    ],
    ids=lambda fields: json.dumps(fields)[:40],
)
def test_a_delivery_of_nothing_is_never_correct(world: World, fields: dict[str, object]) -> None:
    answer = world.ask("/submit", world.worker(), **fields)
    assert answer.status_code == 400 or answer.json()["correct"] == "no"


def test_an_ordinary_request_is_graded_afterwards(world: World) -> None:
    assert world.ask("/score", world.worker(), source=source()).json()["correct"] is True
