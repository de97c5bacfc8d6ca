"""Teardown: submitting for an agent that had an answer and never submitted it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcagent_agent.driver.attempts import WORKSPACE, dumps
from hpcagent_agent.driver.files import read_untrusted, write_atomic
from hpcagent_agent.driver.seal_relay import HARVESTED, PROMOTED, Relay
from hpcagent_agent.driver.settings import Problem, Settings
from hpcagent_agent.tools.client import EXTENSIONS

FIELDS = ("source", "language", "build", "libraries", "workspace_bytes", "compiler", "device_source")
MAX_SOURCE_BYTES = 4 * 1024 * 1024


def promote(settings: Settings, problem: Problem, worker_dir: Path, relay: Relay) -> str:
    """Submit the final attempt's last correct score, or in blind mode the workspace's file; says which.

    What was asked and answered is kept in ``promotion.json``.
    """
    if settings.submission_mode == "blind":
        request, optimizer = _harvest(problem, worker_dir), HARVESTED
    else:
        scored = relay.last_correct
        request = {key: scored[key] for key in FIELDS if key in scored} if scored else None
        optimizer = PROMOTED
    if request is None:
        return "nothing submitted"
    identity = {"kernel": problem.kernel_name, "rank": settings.judge_rank, "episode_id": problem.episode_id}
    reply = relay.submit({"language": problem.language, **request, **identity}, optimizer)
    answer = reply.json()
    record = {"optimizer": optimizer, "status": reply.status, "answer": answer}
    write_atomic(worker_dir / "promotion.json", dumps(record))
    return f"{optimizer} ({_verdict(reply.status, answer)})"


def _harvest(problem: Problem, worker_dir: Path) -> dict[str, Any] | None:
    suffix = next((ext for ext, name in EXTENSIONS.items() if name == problem.language), ".c")
    path = worker_dir / WORKSPACE / f"{problem.kernel_name}{suffix}"
    raw = read_untrusted(path, MAX_SOURCE_BYTES)
    return {"source": raw.decode("utf-8", "replace")} if raw else None


def _verdict(status: int, answer: object) -> str:
    if status == 200 and isinstance(answer, dict):
        return f"correct={answer.get('correct')}"
    return f"the judge answered {status}"
