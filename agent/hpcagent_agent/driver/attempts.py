"""One attempt of an episode: how it ended, its ledger line, and what a relaunch finds (scoring.md T5)."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from hpcagent_agent.driver.files import append_line, read_untrusted, read_untrusted_json

LEDGER = "attempts.jsonl"
MARKER = ".submission-spent"
CANCELLED = "cancelled"
END_RECORD = "harness-end.json"
USAGE = "usage.jsonl"
WORKSPACE = "workspace"
KEPT = frozenset({"prompt.txt", "mcp.json", LEDGER, MARKER})
MAX_TRANSCRIPT_BYTES = 64 * 1024 * 1024


class Stop(Enum):
    """Who ended an attempt; the value is the exit code recorded for it, None where the agent's own counts."""

    ITSELF = None
    SUBMITTED = 123
    DEADLINE = 124
    TOKENS = 125
    CANCELLED = 143


@dataclass(frozen=True)
class Ending:
    """How an attempt ended: the code for tokens.json, the closing record's reason, and whether it crashed."""

    returncode: int
    result: str
    crashed: bool
    turns: int | None
    detail: str


def classify(stop: Stop, returncode: int, record: dict[str, Any] | None) -> Ending:
    """The driver's caps first, then the closing record, then the exit code.

    A crash is a nonzero exit that is none of our caps and left no closing record, or a closing record
    ``api_timeout`` whatever the exit code.
    """
    record = record or {}
    reason = str(record.get("reason") or "")
    turns = record.get("turns")
    turns = turns if isinstance(turns, int) and not isinstance(turns, bool) else None
    detail = str(record.get("detail") or "")[:500]
    if stop is not Stop.ITSELF:
        assert stop.value is not None
        return Ending(stop.value, reason or stop.name.lower(), False, turns, detail)
    if reason == "api_timeout":
        return Ending(127, reason, True, turns, detail)
    if reason == "context_overflow":
        return Ending(126, reason, False, turns, detail)
    if returncode != 0 and not reason:
        return Ending(returncode, "crash", True, turns, detail)
    return Ending(returncode, reason or "finished", False, turns, detail)


def closing_record(workspace: Path) -> dict[str, Any] | None:
    """What the harness wrote into ``harness-end.json``, if it did."""
    return read_untrusted_json(workspace / END_RECORD)


def append_attempt(
    worker_dir: Path, attempt: int, start_ms: int, end_ms: int, ending: Ending, cleared: bool
) -> None:
    """One line of ``attempts.jsonl``."""
    line = {"attempt": attempt, "start_ms": start_ms, "end_ms": end_ms, "returncode": ending.returncode}
    append_line(worker_dir / LEDGER, {**line, "crashed": ending.crashed, "cleared": cleared})


def next_agent_folder(run_dir: Path, shared_dir: Path, record: dict[str, Any]) -> Path:
    """A fresh ``agent-<n>`` under ``shared_dir``, the run's next number, noted in agent-folders.jsonl."""
    shared_dir.mkdir(parents=True, exist_ok=True)
    taken = [int(p.name[6:]) for p in shared_dir.glob("agent-*") if p.name[6:].isdigit()]
    number = max(taken, default=-1) + 1
    while True:
        folder = shared_dir / f"agent-{number}"
        try:
            folder.mkdir()
        except FileExistsError:  # another driver of this run was faster
            number += 1
            continue
        append_line(run_dir / "agent-folders.jsonl", {"folder": folder.name, **record})
        return folder


def collect_usage(worker_dir: Path) -> None:
    """Copy the harness's usage file out of its workspace, beside the transcript."""
    raw = read_untrusted(worker_dir / WORKSPACE / USAGE, MAX_TRANSCRIPT_BYTES)
    if raw:
        (worker_dir / USAGE).write_bytes(raw)


def clear_for_relaunch(worker_dir: Path, agent_folder: Path, attempt: int, transcripts: list[str]) -> None:
    """Empty what an attempt left, so that the next starts with its kernel's material and nothing else.

    Kept: prompt.txt, mcp.json, attempts.jsonl, the submission marker, and transcripts, renamed
    ``<stem>.attempt<N><suffix>``.
    """
    for name in transcripts:
        path = worker_dir / name
        if path.is_file():
            path.rename(path.with_name(f"{path.stem}.attempt{attempt}{path.suffix}"))
    for entry in list(worker_dir.iterdir()):
        if entry.name not in KEPT and ".attempt" not in entry.name:
            remove(entry)
    for entry in list(agent_folder.iterdir()):
        remove(entry)


def remove(path: Path) -> None:
    """Delete a file, a link or a tree, also one whose folders an agent closed to us."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return

    path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for child in (Path(folder) / name for name in names):
            if not child.is_symlink():
                child.chmod(0o700)
    shutil.rmtree(path)


def now_ms() -> int:
    """UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000


def dumps(record: dict[str, Any]) -> str:
    """The files of a worker directory are JSON with one object."""
    return json.dumps(record, indent=1) + "\n"
