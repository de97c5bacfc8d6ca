"""Episodes: their labels, the work they answer, and what a driver's tokens.json says about their end."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcagent_bench.errors import UserError
from hpcagent_bench.results_db import Episode

_LABEL = re.compile(
    r"^(?P<setup>.+)\.n(?P<node>\d+)\.p(?P<problem>\w+)\.w(?P<worker>\d+)(?:\.s(?P<slot>\d+))?$"
)

_TOKENS: dict[str, tuple[str, ...]] = {
    "fresh_input_tokens": ("tokens_fresh_input", "fresh_input_tokens", "fresh_input"),
    "cached_input_tokens": ("tokens_cached_input", "cached_input_tokens", "cached_input"),
    "output_tokens": ("tokens_output", "output_tokens", "output"),
    "thinking_tokens": ("thinking_tokens", "tokens_thinking", "thinking_estimate", "thinking"),
    "billed_tokens": ("tokens_billed", "tokens"),
    "effective_tokens": ("tokens_effective",),
    "crashed_billed_tokens": ("tokens_billed_crashed",),
    "crashed_effective_tokens": ("tokens_effective_crashed",),
    "final_attempt_start_ms": ("final_attempt_start_ms",),
    "returncode": ("returncode",),
    "turns": ("turns",),
    "wall_ms": ("wall_ms",),
    "api_ms": ("api_ms",),
}
"""Integer columns of an episode, with the keys of tokens.json they are read from, first present wins."""


@dataclass(frozen=True, order=True)
class Work:
    """One designed unit of a study: a kernel answered once, in one repeat slot, under one setup."""

    setup: str
    kernel: str
    slot: int = 1


@dataclass(frozen=True)
class LabelParts:
    """The parts of an episode label, for display; identity is always the recorded row."""

    setup: str
    node: int
    problem: str
    worker: int
    slot: int | None


def episode_label(setup: str, node: int, problem: int | str, worker: int, slot: int | None = None) -> str:
    """``<setup>.n<node>.p<problem>.w<worker>[.s<slot>]``."""
    tail = "" if slot is None else f".s{slot}"
    return f"{setup}.n{node}.p{problem}.w{worker}{tail}"


def parse_label(label: str) -> LabelParts | None:
    """The parts of ``label``, or None when it is not of that form (``adhoc``)."""
    found = _LABEL.match(label)
    if found is None:
        return None
    slot = found["slot"]
    return LabelParts(
        found["setup"],
        int(found["node"]),
        found["problem"],
        int(found["worker"]),
        int(slot) if slot else None,
    )


def _integer(tokens: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = tokens.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if value != value or abs(value) >= 2**62:
            raise UserError(f"tokens.json: {key}={value!r} is not a usable count")
        return int(value)
    return None


def kernel_name(kernel: str) -> str:
    """The bare name of a kernel given by name or by ``track/name`` path key."""
    return kernel.rsplit("/", 1)[-1]


def _columns(tokens: Mapping[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: _integer(tokens, keys) for name, keys in _TOKENS.items()}
    attempts = _integer(tokens, ("attempts",))
    if attempts is not None:
        columns["relaunches"] = max(0, attempts - 1)
    if isinstance(tokens.get("cancelled"), bool | int):
        columns["cancelled"] = int(bool(tokens["cancelled"]))
    for name in ("result", "output_source"):
        if isinstance(tokens.get(name), str):
            columns[name] = tokens[name]
    return {name: value for name, value in columns.items() if value is not None}


def ingest(
    conn: sqlite3.Connection,
    tokens: Mapping[str, Any],
    episode: Episode | None = None,
    job: int | None = None,
) -> int:
    """Fold one tokens.json into its episode's row and return the row's id; repeating changes nothing.

    ``episode`` says whose record it is when the caller knows (its row is made when absent; its setup's row
    must exist); else ``episode_id``, ``job`` and ``rep`` of the record name an existing row. The record is
    the driver's last word, so what it states replaces what the row holds. UserError: no such row, bad counts.
    """
    if episode is None:
        label = tokens.get("episode_id")
        if not isinstance(label, str) or not label:
            raise UserError("tokens.json: episode_id is missing")
        job = _integer(tokens, ("job",)) if job is None else job
        key = (-1 if job is None else job, label, _integer(tokens, ("rep",)) or 1)
    else:
        key = episode.key
    row = conn.execute(
        "SELECT id FROM episodes WHERE coalesce(job, -1) = ? AND label = ? AND rep = ?", key
    ).fetchone()
    columns = _columns(tokens)
    if row is not None:
        row_id = int(row["id"])
    elif episode is not None:
        row_id = _insert_episode(conn, episode)
    else:
        raise UserError(f"tokens.json: no episode {key[1]} of job {key[0]} is recorded")
    if isinstance(tokens.get("kernel"), str):
        conn.execute(
            "UPDATE episodes SET kernel = coalesce(kernel, ?) WHERE id = ?",
            (kernel_name(tokens["kernel"]), row_id),
        )
    if columns:
        changes = ", ".join(f"{name} = ?" for name in columns)
        conn.execute(f"UPDATE episodes SET {changes} WHERE id = ?", [*columns.values(), row_id])
    return row_id


def _insert_episode(conn: sqlite3.Connection, episode: Episode) -> int:
    cursor = conn.execute(
        "INSERT INTO episodes (setup, job, label, rep, slot, kernel) VALUES (?, ?, ?, ?, ?, ?)",
        (episode.setup, episode.job, episode.label, episode.rep, episode.slot, episode.kernel),
    )
    return int(cursor.lastrowid or 0)
