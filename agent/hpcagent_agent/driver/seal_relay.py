"""The only way from a worker's sandbox to the judge: an HTTP relay on a unix socket, one per episode.

It adds the episode's secret token, so the token never enters the sandbox. Standing outside, it is also the
witness the driver trusts: it sees the last source that scored correct, and whether the submission was spent.
"""

from __future__ import annotations

import contextlib
import json
import re
import socketserver
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from hpcagent_agent.driver.files import write_atomic
from hpcagent_agent.driver.settings import Mode
from hpcagent_agent.tools.client import spends_submission

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_CONNECTIONS = 32
IDLE_S = 120.0
CONNECT_TRIES = 3
ROUTE = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
SCORE_ROUTES = frozenset({"/score", "/bench"})
SUBMIT_ROUTES = frozenset({"/submit", "/oracle"})
PROMOTED = "promoted-unsubmitted"
HARVESTED = "harvested-workspace"


@dataclass(frozen=True)
class Reply:
    """What goes back to the agent."""

    status: int
    body: bytes
    content_type: str = "application/json"

    def json(self) -> Any:
        """The decoded body; None when it is no JSON."""
        return _decoded(self.body)


class Relay:
    """Forwards to ``judge_url`` with ``token``, enforces ``mode`` and remembers what was scored.

    ``marker`` is written once the judge answered a graded /submit, and holds that answer.
    """

    def __init__(
        self, socket_path: Path, judge_url: str, token: str, mode: Mode, marker: Path, timeout_s: float
    ) -> None:
        self.socket_path = socket_path
        self.spent = threading.Event()
        self._mode = mode
        self._marker = marker
        self._state = threading.Condition()
        self._submitting = 0
        self._last_correct: dict[str, Any] | None = None
        self._attempt = 0
        self._http = httpx.Client(
            base_url=judge_url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout_s, connect=10.0),
            limits=httpx.Limits(max_keepalive_connections=4),
            trust_env=False,
        )
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests under way lose their connection to the judge."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._http.close()
        self.socket_path.unlink(missing_ok=True)

    def begin_attempt(self) -> None:
        """Forget the scores of an earlier attempt: only the final one's may be promoted."""
        with self._state:
            self._attempt += 1
            self._last_correct = None

    @property
    def last_correct(self) -> dict[str, Any] | None:
        """The request of the attempt's last /score that came back correct."""
        with self._state:
            return self._last_correct

    @property
    def submitting(self) -> bool:
        """Whether the judge is grading a /submit of this agent now."""
        with self._state:
            return self._submitting > 0

    def settle(self, timeout_s: float, stop: threading.Event) -> bool:
        """Wait until no /submit is under way; False after ``timeout_s`` or once ``stop`` is set."""
        until = time.monotonic() + timeout_s
        while self.submitting:
            if stop.is_set() or time.monotonic() >= until:
                return False
            stop.wait(0.1)
        return True

    def submit(self, request: dict[str, Any], optimizer: str) -> Reply:
        """Submit for an agent that did not: the driver's promotion. Does not spend the agent's submission."""
        body = json.dumps({**request, "optimizer": optimizer}).encode()
        return self._forward("POST", "/submit", body)

    def answer(self, method: str, target: str, body: bytes) -> Reply:
        """Answer one request of the agent. ``target`` is the request line's, decoded before it is judged."""
        if not target.startswith("/") or target.startswith("//"):
            return _refusal(404, f"no such route: {target[:100]}")
        parts = urlsplit(target)
        path = unquote(parts.path).rstrip("/")
        if not ROUTE.fullmatch(path):
            return _refusal(404, f"no such route: {parts.path[:100]}")
        if method == "POST" and path in SUBMIT_ROUTES:
            return self._agent_submit(body)
        if method == "POST" and path in SCORE_ROUTES:
            return self._agent_score(path, body)
        return self._forward(method, f"{path}?{parts.query}" if parts.query else path, body)

    def _agent_score(self, path: str, body: bytes) -> Reply:
        if self._mode == "blind":
            return _refusal(403, "/score is not offered in blind mode: submit once, with /submit")
        with self._state:
            attempt = self._attempt
        reply = self._forward("POST", path, body)
        verdict = reply.json() if reply.status == 200 else None
        if isinstance(verdict, dict) and verdict.get("correct") is True:
            request = _decoded(body)
            if isinstance(request, dict) and isinstance(request.get("source"), str):
                with self._state:
                    if attempt == self._attempt:  # not an answer that outlived its attempt
                        self._last_correct = request
        return reply

    def _agent_submit(self, body: bytes) -> Reply:
        once = self._mode != "multi"
        request = _decoded(body)
        if isinstance(request, dict) and str(request.get("optimizer")) in (PROMOTED, HARVESTED):
            return _refusal(400, f"optimizer {request['optimizer']} is not an agent's to claim")
        with self._state:
            if once and self.spent.is_set():
                return _refusal(409, f"this episode has spent its one submission ({self._mode} mode)")
            if once and self._submitting:
                return _refusal(409, "a submission of this episode is being graded now")
            self._submitting += 1
        try:
            reply = self._forward("POST", "/submit", body)
            if spends_submission(reply.status, reply.json()):
                write_atomic(self._marker, reply.body.decode("utf-8", "replace"))
                self.spent.set()
            return reply
        finally:
            with self._state:
                self._submitting -= 1

    def _forward(self, method: str, target: str, body: bytes) -> Reply:
        headers = {"Content-Type": "application/json"} if body else {}
        for _ in range(CONNECT_TRIES):
            try:
                response = self._http.request(method, target, content=body, headers=headers)
            except httpx.ConnectError:
                time.sleep(0.5)  # nothing was sent, so asking again cannot grade twice
                continue
            except (httpx.HTTPError, RuntimeError) as error:
                return _refusal(502, f"the judge cannot be reached: {error or type(error).__name__}")
            kind = response.headers.get("Content-Type", "application/json")
            return Reply(response.status_code, response.content, kind)
        return _refusal(502, "the judge cannot be reached: connection refused")


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _refusal(status: int, error: str) -> Reply:
    return Reply(status, json.dumps({"error": error}).encode())


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(str(relay.socket_path), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        # An agent that opens connections without end must not exhaust the driver that serves the others.
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that hangs up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: _Server

    def do_GET(self) -> None:
        self._relay("GET")

    def do_POST(self) -> None:
        self._relay("POST")

    def _relay(self, method: str) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isascii() or not length.isdigit():
            return self._send(_refusal(411, "send a Content-Length"), close=True)
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            return self._send(_refusal(413, f"the body exceeds {MAX_BODY_BYTES} bytes"), close=True)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None
        return self._send(self.server.relay.answer(method, self.path, body))

    def _send(self, reply: Reply, close: bool = False) -> None:
        with contextlib.suppress(OSError):
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            if close:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are the judge's to record."""
