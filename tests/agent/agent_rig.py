"""A scripted judge on loopback and a run tree for the driver, which runs as the real subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "5ec2e7" * 10
CORRECT = {"correct": True, "speedup": 1.5, "build_ok": True, "cells": []}
YES = {"correct": "yes", "request_id": "r1"}
Answer = tuple[int, dict[str, Any]]


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


class FakeJudge:
    """Answers by route with what ``script`` holds (a list is used up, its last entry stays)."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.script: dict[str, list[Answer]] = {"/score": [(200, CORRECT)], "/submit": [(200, YES)]}
        self.delay_s = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, raw: bytes) -> None:
                path = self.path.partition("?")[0]
                if path != "/health":
                    seen = {"path": path, "auth": self.headers.get("Authorization"), "raw": raw}
                    outer.requests.append({**seen, "body": _decoded(raw)})
                    time.sleep(outer.delay_s)
                answers = outer.script.get(path, [(200, {"status": "ok"})])
                status, body = answers.pop(0) if len(answers) > 1 else answers[0]
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def posts(self, path: str) -> list[dict[str, Any]]:
        return [r["body"] for r in self.requests if r["path"] == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Run:
    """One driver over one run tree; the harness is Python source handed to ``-c``."""

    def __init__(self, root: Path, judge: FakeJudge) -> None:
        self.root = root
        self.judge = judge
        task = root / "shared" / "tasks" / "tsvc_2_s311"
        task.mkdir(parents=True)
        (task / "tsvc_2_s311.c").write_text("void tsvc_2_s311_fp64(void) {}\n")
        (task / "task.json").write_text("{}")

    def config(self, harness: str | list[str], env: dict[str, str] | None = None, **changes: Any) -> Path:
        argv = ["{python}", "-c", harness] if isinstance(harness, str) else harness
        problem = {"id": 0, "kernel": "tsvc_2_s311", "setup": "t-c-x", "episode_id": "t-c-x.n0.p0.w0"}
        config: dict[str, Any] = {
            "run_dir": str(self.root),
            "judge_url": self.judge.url,
            "shared_dir": str(self.root / "shared"),
            "problems": [{**problem, "token": TOKEN, "job": 7, "prompt": "make it fast"}],
            "harness": {"name": "probe", "argv": argv, "env": env or {}},
            "seal": {"enabled": False},
            "timeout_s": 60,
            "submitted_grace_s": 0.3,
            "kill_grace_s": 1.0,
            "stagger_s": 0,
            **changes,
        }
        path = self.root / "driver.json"
        path.write_text(json.dumps(config))
        return path

    def start(self, config: Path) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "hpcagent_agent.driver.agent_driver", str(config)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def drive(self, harness: str | list[str], **changes: Any) -> tuple[int, str]:
        process = self.start(self.config(harness, **changes))
        out, _ = process.communicate(timeout=90)
        return process.returncode, out

    def worker_dir(self, number: int = 0) -> Path:
        return self.root / "agents" / "node-0" / f"problem-{number}-worker-0"

    def tokens(self, number: int = 0) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.worker_dir(number) / "tokens.json").read_text())
        return loaded

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.worker_dir() / "attempts.jsonl").read_text().splitlines()]


def gone(pid: int) -> bool:
    """Whether ``pid`` has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
