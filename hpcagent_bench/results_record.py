"""Writing one grade: setup, episode, grade, sources, cells and final row in one transaction."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from hpcagent_bench.errors import UserError
from hpcagent_bench.results_file import transaction
from hpcagent_bench.results_rows import Cell, Episode, Grade, Setup, Source


class SetupConflict(UserError):
    """One setup name with two different configurations."""


_FILLED = frozenset({"study", "model"})
"""Setup columns a later writer may fill where the first left them NULL; the others must agree."""

_NOT_COLUMNS = frozenset({"cells", "sources"})


def sql_value(value: Any) -> Any:
    """``value`` as SQLite stores it: numpy scalars as Python's, containers as JSON text, NaN as NULL."""
    if isinstance(value, str | bytes) or value is None:
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), sort_keys=True, default=_plain)
    if isinstance(value, list | tuple):
        return json.dumps(list(value), default=_plain)
    return value


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def insert(conn: sqlite3.Connection, table: str, columns: Mapping[str, Any], verb: str = "INSERT") -> int:
    """Insert one row and return its rowid."""
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    values = [sql_value(value) for value in columns.values()]
    return int(conn.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", values).lastrowid or 0)


def ensure_setup(conn: sqlite3.Connection, setup: Mapping[str, Any]) -> bool:
    """Keep ``setup``'s row: the first writer fixes it, a later one only fills what was unknown.

    True when the row is new. SetupConflict when the recorded row says something else: one name never stands
    for two setups.
    """
    held = conn.execute("SELECT * FROM setups WHERE setup = ?", (setup["setup"],)).fetchone()
    if held is None:
        insert(conn, "setups", setup)
        return True
    for column, value in setup.items():
        known = held[column]
        if value is None or value == known:
            continue
        if column in _FILLED and known in (None, ""):
            conn.execute(f"UPDATE setups SET {column} = ? WHERE setup = ?", (value, setup["setup"]))
        elif not (column in _FILLED and value == ""):
            raise SetupConflict(
                f"setup '{setup['setup']}' is recorded with {column}={known!r}, now it comes with {value!r}",
                "give the other configuration another setup name",
            )
    return False


def ensure_episode(conn: sqlite3.Connection, episode: Episode) -> int:
    """The id of ``episode``'s row, made when absent. UserError when its key belongs to another setup."""
    row = conn.execute(
        "SELECT id, setup, kernel FROM episodes WHERE coalesce(job, -1) = ? AND label = ? AND rep = ?",
        episode.key,
    ).fetchone()
    if row is None:
        return insert(conn, "episodes", dataclasses.asdict(episode))
    if row["setup"] != episode.setup:
        raise UserError(
            f"episode {episode.label} of job {episode.job} is recorded for setup '{row['setup']}', "
            f"not '{episode.setup}'"
        )
    if row["kernel"] is None and episode.kernel is not None:
        conn.execute("UPDATE episodes SET kernel = ? WHERE id = ?", (episode.kernel, row["id"]))
    return int(row["id"])


def free_ms(conn: sqlite3.Connection, episode_id: int, kernel: str, kind: str, ts_ms: int) -> int:
    """The first millisecond from ``ts_ms`` on at which the episode has no grade of this kernel and kind."""
    taken = conn.execute(
        "SELECT ts_ms FROM grades WHERE episode_id = ? AND kernel = ? AND kind = ? AND ts_ms >= ? "
        "ORDER BY ts_ms",
        (episode_id, kernel, kind, ts_ms),
    )
    for (held,) in taken:
        if held != ts_ms:
            break
        ts_ms += 1
    return ts_ms


def _call_index(conn: sqlite3.Connection, episode_id: int, kernel: str, kind: str) -> int:
    row = conn.execute(
        "SELECT coalesce(max(call_index), 0) + 1 FROM grades "
        "WHERE episode_id = ? AND kernel = ? AND kind = ?",
        (episode_id, kernel, kind),
    ).fetchone()
    return int(row[0])


def next_call_index(
    conn: sqlite3.Connection, episode_key: Episode | tuple[int | None, str, int], kernel: str, kind: str
) -> int:
    """The 1-based index of this episode's next call of ``kind`` on ``kernel``; key = (job, label, rep)."""
    job, label, rep = episode_key.key if isinstance(episode_key, Episode) else episode_key
    row = conn.execute(
        "SELECT id FROM episodes WHERE coalesce(job, -1) = ? AND label = ? AND rep = ?",
        (-1 if job is None else job, label, rep),
    ).fetchone()
    return 1 if row is None else _call_index(conn, int(row["id"]), kernel, kind)


def _insert_cell(conn: sqlite3.Connection, grade_id: int, cell: Cell) -> None:
    fields = {f.name: getattr(cell, f.name) for f in dataclasses.fields(cell)}
    insert(conn, "grade_cells", {"grade_id": grade_id, **fields})


def _insert_source(conn: sqlite3.Connection, grade_id: int, source: Source) -> None:
    # Lone surrogates cannot be stored as UTF-8; what cannot be text is replaced, visibly.
    text = source.text.encode("utf-8", "backslashreplace").decode("utf-8")
    digest = dataclasses.replace(source, text=text).hash
    insert(conn, "sources", {"hash": digest, "text": text}, verb="INSERT OR IGNORE")
    keys = {"grade_id": grade_id, "part": source.part, "language": source.language, "hash": digest}
    insert(conn, "grade_sources", keys)


def add_grade(conn: sqlite3.Connection, episode_id: int, grade: Grade, of_grade_id: int | None = None) -> int:
    """Insert one grade with its cells and sources and return its id; the caller holds the transaction."""
    columns = {
        f.name: getattr(grade, f.name) for f in dataclasses.fields(grade) if f.name not in _NOT_COLUMNS
    }
    columns["ts_ms"] = free_ms(conn, episode_id, grade.kernel, grade.kind, grade.ts_ms)
    if grade.call_index is None and of_grade_id is None:
        columns["call_index"] = _call_index(conn, episode_id, grade.kernel, grade.kind)
    grade_id = insert(conn, "grades", {"episode_id": episode_id, "of_grade_id": of_grade_id, **columns})
    for cell in grade.cells:
        _insert_cell(conn, grade_id, cell)
    for source in grade.sources:
        _insert_source(conn, grade_id, source)
    return grade_id


def record(
    conn: sqlite3.Connection, setup: Setup, episode: Episode, grade: Grade, final: Grade | None = None
) -> tuple[int, int | None]:
    """Write ``grade`` and, for an accepted submission, its ``final`` row; returns both ids.

    One transaction holds everything: after a kill there are all rows or none. A grade of the same episode,
    kernel and kind in the same millisecond moves to the next free one. A commit is on disk on return.
    """
    if episode.setup != setup.setup:
        raise UserError(f"episode {episode.label} names setup '{episode.setup}', the grade '{setup.setup}'")
    if final is not None and final.kind not in ("final", "regrade"):
        raise ValueError(f"a final row has kind 'final' or 'regrade', not '{final.kind}'")
    with transaction(conn):
        ensure_setup(conn, dataclasses.asdict(setup))
        episode_id = ensure_episode(conn, episode)
        grade_id = add_grade(conn, episode_id, grade)
        final_id = None if final is None else add_grade(conn, episode_id, final, grade_id)
    return grade_id, final_id
