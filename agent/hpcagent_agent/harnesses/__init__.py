"""Harnesses: programs that run as an agent does, in the workspace, and end with a closing record.

A harness is started as ``argv`` in its working folder, which holds ``prompt.txt`` and ``task/``, with the
environment of an agent: JUDGE_URL, JUDGE_RANK, KERNEL, LANGUAGE, HPCAGENT_BENCH_EPISODE_ID,
HPCAGENT_BENCH_USAGE_PATH, HPCAGENT_BENCH_HARNESS_OPTIONS, AGENT_WORKDIR,
AGENT_SUBMISSION_MARKER, AGENT_SUBMISSION_MODE, AGENT_DEADLINE_MS. It writes ``harness-end.json`` before it
ends; an end without one and with a nonzero exit code is a crash, and is relaunched.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hpcagent_agent.driver.files import write_atomic
from hpcagent_agent.tools.client import EXTENSIONS, JudgeClient

Reason = Literal["finished", "context_overflow", "api_timeout", "error"]

HARNESSES: dict[str, tuple[str, ...]] = {
    "reference": ("{python}", "-m", "hpcagent_agent.harnesses.reference"),
    "autotune": ("{python}", "-m", "hpcagent_agent.harnesses.autotune"),
}


@dataclass(frozen=True)
class Workspace:
    """Where a harness works and what it was asked. ``deadline_ms`` is UTC epoch milliseconds or None."""

    workdir: Path
    kernel: str
    language: str
    mode: str
    deadline_ms: int | None
    options: dict[str, Any]

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Workspace:
        """Read the environment an agent gets; raises ValueError when KERNEL is missing."""
        env = os.environ if environ is None else environ
        if not env.get("KERNEL"):
            raise ValueError("KERNEL is not set: it names the kernel, for example tsvc_2_s311")
        deadline = env.get("AGENT_DEADLINE_MS") or ""
        options = json.loads(env.get("HPCAGENT_BENCH_HARNESS_OPTIONS") or "{}")
        return cls(
            workdir=Path(env.get("AGENT_WORKDIR") or Path.cwd()),
            kernel=env["KERNEL"].rsplit("/", 1)[-1],
            language=env.get("LANGUAGE") or "c",
            mode=env.get("AGENT_SUBMISSION_MODE") or "single",
            deadline_ms=int(deadline) if deadline else None,
            options=options if isinstance(options, dict) else {},
        )

    @property
    def task(self) -> Path:
        """The kernel's reference material."""
        return self.workdir / "task"

    def reference(self) -> Path:
        """The source of the implementation to beat, in this workspace's language."""
        suffix = next((ext for ext, name in EXTENSIONS.items() if name == self.language), ".c")
        return self.task / f"{self.kernel}{suffix}"

    def read_reference(self) -> str | None:
        """The text of ``reference()``; None, with the closing record written, when it cannot be read."""
        path = self.reference()
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            self.end("error", f"{path.name}: {error}")
            print(f"{path}: {error}", file=sys.stderr)
            return None

    def submit(self, judge: JudgeClient, source: str, detail: str = "", turns: int = 0) -> int:
        """Submit and close; the harness's exit code: 0 graded, 1 not.

        A fault that may pass leaves no closing record, so that the attempt counts as crashed and is tried
        again; a refusal would only be refused again, so it is final.
        """
        answer = judge.submit(source)
        if answer["ok"] and not answer.get("judge_fault"):
            self.end("finished", f"correct={answer.get('correct')} {detail}".strip(), turns)
            print(f"submitted {self.kernel}: correct={answer.get('correct')} {detail}".strip())
            return 0
        fault = str(answer.get("error") or "the judge reported a fault of its own")
        print(f"submit: {fault}", file=sys.stderr)
        if 400 <= answer.get("status", 0) < 500:
            self.end("error", fault, turns)
        return 1

    def seconds_left(self) -> float:
        """Until the deadline; infinite without one."""
        return float("inf") if self.deadline_ms is None else self.deadline_ms / 1000 - time.time()

    def end(self, reason: Reason, detail: str = "", turns: int = 0) -> None:
        """Write the closing record."""
        record = {"reason": reason, "turns": turns, "detail": detail}
        write_atomic(self.workdir / "harness-end.json", json.dumps(record) + "\n")
