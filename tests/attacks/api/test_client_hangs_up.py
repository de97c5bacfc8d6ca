"""A client that goes away in the middle: its grade is made and recorded, and it can't have another one."""

from __future__ import annotations

import json
import socket
import struct
from urllib.parse import urlparse

from attack_api import KERNEL, World, source
from launching import until

SLOW = source(
    "usleep(50000);\n" + "for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i];", "#include <unistd.h>"
)


def hang_up(world: World, token: str, text: str) -> None:
    """Send a whole submission and reset the connection."""
    place = urlparse(world.url)
    body = json.dumps({"kernel": KERNEL, "language": "c", "rank": 0, "source": text}).encode()
    head = (
        f"POST /submit HTTP/1.1\r\nHost: judge\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    line = socket.create_connection((place.hostname, place.port))
    line.sendall(head.encode() + body)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(
        lambda: world.ask("/score", token, rank=5).status_code == 421
    )  # the judge has read what came before
    line.close()


def test_the_one_submission_is_spent_by_a_client_that_hangs_up(world: World) -> None:
    token = world.worker("single")
    hang_up(world, token, SLOW)
    until(lambda: bool(world.graded(token)), pause_s=0.1)
    assert world.graded(token)[0][:2] == ("submit", "ok")
    assert world.ask("/submit", token, source=source()).status_code == 409


def test_a_client_that_waits_is_answered_with_what_is_recorded(world: World) -> None:
    token = world.worker("single")
    answer = world.ask("/submit", token, source=source())
    assert answer.json()["correct"] == "yes"
    assert world.graded(token)[0][:2] == ("submit", "ok")
