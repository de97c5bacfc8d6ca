"""Merging results databases by natural key: ids remapped, unset columns filled, nothing added twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench.errors import UserError
from hpcagent_bench.results_file import create, is_blank, open_ro, transaction
from hpcagent_bench.results_record import SetupConflict, ensure_setup

EMPTY = "empty: nothing was recorded in it"
"""Why a file without tables is skipped: its writer ended before its first grade."""

_CHILDREN: dict[str, tuple[str, ...]] = {
    "grade_sources": ("part",),
    "grade_cells": ("cell",),
    "scaling_grades": ("mode", "input"),
    "scaling_points": ("mode", "input", "ranks"),
    "disqualifications": (),
}
"""Tables hanging on a grade, with what beside grade_id makes up their key; parents before children."""


@dataclass
class MergeReport:
    """What a merge did: files read, rows added per table, files left out with the reason."""

    merged: list[Path] = field(default_factory=list)
    unchanged: list[Path] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    strangers: int = 0
    """Grades left out because their episode is not here, where only known ones were wanted."""

    def line(self) -> str:
        """One line for people."""
        rows = ", ".join(f"{count} {table}" for table, count in self.added.items() if count) or "nothing new"
        left = f", {len(self.skipped)} file(s) skipped" if self.skipped else ""
        return f"merged {len(self.merged)} file(s): {rows}{left}"


def merge(target: Path, sources: Iterable[Path]) -> MergeReport:
    """Merge every source into ``target`` (made when absent), each file whole or not at all.

    A corrupt or foreign file is named in the report and skipped. A setup that two files describe differently
    is refused: the others are merged, then SetupConflict (a UserError) is raised. Repeating adds nothing.
    """
    report = MergeReport()
    conn = create(target)
    try:
        for path in sources:
            merge_file(conn, path, report)
    finally:
        conn.close()
    raise_conflicts(report)
    return report


def raise_conflicts(report: MergeReport) -> None:
    """SetupConflict when the report holds a refused file."""
    if report.conflicts:
        raise SetupConflict("; ".join(report.conflicts), "one setup name must mean one configuration")


def merge_file(
    conn: sqlite3.Connection,
    path: Path,
    report: MergeReport,
    *,
    leave: Collection[str] = (),
    known_only: bool = False,
) -> bool:
    """Merge one file in one transaction; False when it was left out.

    Grades under a protocol in ``leave`` stay behind; with ``known_only`` also those of episodes that are not
    here, counted in ``report.strangers``.
    """
    added: Counter[str] = Counter()
    try:
        source = open_ro(path)
    except UserError as error:
        report.skipped.append((path, EMPTY if is_blank(path) else _reason(path, error)))
        return False
    try:
        with transaction(conn):
            source.execute("BEGIN")
            _check_whole(source)
            strangers = _merge_rows(conn, source, added, leave, known_only)
    except SetupConflict as error:
        report.conflicts.append(f"{path}: {error.message}")
        report.skipped.append((path, error.message))
        return False
    except (UserError, sqlite3.DatabaseError, UnicodeError, KeyError, IndexError) as error:
        report.skipped.append((path, _reason(path, error)))
        return False
    finally:
        source.close()
    report.merged.append(path)
    report.added.update(+added)
    report.strangers += strangers
    return True


def _reason(path: Path, error: Exception) -> str:
    text = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return text.removeprefix(f"{path}: ")


def _check_whole(source: sqlite3.Connection) -> None:
    """UserError when pages are damaged: a broken file must not give half of its rows."""
    found = source.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise UserError(f"damaged database file ({str(found).splitlines()[-1]})")
    orphan = source.execute("PRAGMA foreign_key_check").fetchone()
    if orphan is not None:
        raise UserError(f"damaged database file (a row of {orphan[0]} points nowhere)")


def _rows(source: sqlite3.Connection, table: str, order: str = "") -> list[dict[str, Any]]:
    return [dict(row) for row in source.execute(f"SELECT * FROM {table} {order}")]


def _merge_rows(
    conn: sqlite3.Connection,
    source: sqlite3.Connection,
    added: Counter[str],
    leave: Collection[str],
    known_only: bool,
) -> int:
    """Merge every table; returns how many grades were left out as those of unknown episodes."""
    theirs = [row for row in _rows(source, "episodes") if not known_only or _held_episode(conn, row)]
    wanted = {row["setup"] for row in theirs}
    for setup in _rows(source, "setups"):
        if not known_only or setup["setup"] in wanted:
            added["setups"] += ensure_setup(conn, setup)
    episodes = {row["id"]: _merge_episode(conn, row, added) for row in theirs}
    strangers = 0
    grades: dict[int, int] = {}
    # A row is always written after the one it belongs to, so id order meets parents first.
    for row in _rows(source, "grades", "ORDER BY id"):
        if row["episode_id"] not in episodes:
            strangers += 1
        elif row["timing_reduction"] not in leave:
            grades[row["id"]] = _merge_grade(conn, row, episodes, grades, added)
    texts = source.execute("SELECT hash, text FROM sources")
    links = source.execute("SELECT grade_id, hash FROM grade_sources")
    used = {row["hash"] for row in links if row["grade_id"] in grades} if known_only else None
    upsert = "INSERT INTO sources (hash, text) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
    wanted_texts = (tuple(row) for row in texts if used is None or row["hash"] in used)
    added["sources"] += conn.executemany(upsert, wanted_texts).rowcount
    _merge_children(conn, source, grades, added)
    keys = ("source", "kernel", "mode", "ranks", "repeat", "ts_ms")
    points = _rows(source, "reference_scaling_points")
    added["reference_scaling_points"] += _insert_or_fill(conn, "reference_scaling_points", keys, points)
    return strangers


def _merge_children(
    conn: sqlite3.Connection, source: sqlite3.Connection, grades: dict[int, int], added: Counter[str]
) -> None:
    """Cells, sources and whatever else hangs on the grades that were merged (id there to id here)."""
    for table, keys in _CHILDREN.items():
        rows = [row for row in _rows(source, table) if row["grade_id"] in grades]
        for row in rows:
            row["grade_id"] = grades[row["grade_id"]]
        added[table] += _insert_or_fill(conn, table, ("grade_id", *keys), rows)


def copy_grade(conn: sqlite3.Connection, source: sqlite3.Connection, grade_id: int) -> int:
    """Copy one submission with its setup, episode, cells and sources; returns its id here. In a transaction.

    What is here already is kept, so copying again changes nothing.
    """
    added: Counter[str] = Counter()
    grade = dict(source.execute("SELECT * FROM grades WHERE id = ?", (grade_id,)).fetchone())
    episode_id = copy_episode(conn, source, grade["episode_id"])
    used = "hash IN (SELECT hash FROM grade_sources WHERE grade_id = ?)"
    texts = source.execute(f"SELECT hash, text FROM sources WHERE {used}", (grade_id,))
    conn.executemany("INSERT OR IGNORE INTO sources (hash, text) VALUES (?, ?)", map(tuple, texts))
    new = _merge_grade(conn, grade, {grade["episode_id"]: episode_id}, {}, added)
    for table, keys in _CHILDREN.items():
        rows = _rows(source, table, f"WHERE grade_id = {int(grade_id)}")
        _insert_or_fill(conn, table, ("grade_id", *keys), [{**row, "grade_id": new} for row in rows])
    return new


def copy_episode(conn: sqlite3.Connection, source: sqlite3.Connection, episode_id: int) -> int:
    """Copy one episode with its setup; returns its id here. In a transaction."""
    episode = dict(source.execute("SELECT * FROM episodes WHERE id = ?", (episode_id,)).fetchone())
    setup = source.execute("SELECT * FROM setups WHERE setup = ?", (episode["setup"],)).fetchone()
    ensure_setup(conn, dict(setup))
    return _merge_episode(conn, episode, Counter())


def _insert_or_fill(
    conn: sqlite3.Connection, table: str, keys: tuple[str, ...], rows: list[dict[str, Any]]
) -> int:
    """Insert the new rows, fill what held twins of the others leave NULL; returns how many are new."""
    if not rows:
        return 0
    names = list(rows[0])
    marks = ", ".join(f":{name}" for name in names)
    clash = f"ON CONFLICT ({', '.join(keys)}) DO NOTHING"
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) {clash}"
    new = conn.executemany(insert, rows).rowcount
    others = [name for name in names if name not in keys]
    if new < len(rows) and others:
        where = " AND ".join(f"{key} = :{key}" for key in keys)
        changes = ", ".join(f"{name} = coalesce({name}, :{name})" for name in others)
        gap = " OR ".join(f"({name} IS NULL AND :{name} IS NOT NULL)" for name in others)
        conn.executemany(f"UPDATE {table} SET {changes} WHERE {where} AND ({gap})", rows)
    return int(new)


def _add(conn: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    marks = ", ".join(f":{name}" for name in row)
    return int(conn.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row).lastrowid or 0)


def _fill(
    conn: sqlite3.Connection,
    table: str,
    held: dict[str, Any],
    row: dict[str, Any],
    where: str,
    params: list[Any],
) -> None:
    unset = [name for name, value in row.items() if value is not None and held[name] is None]
    if unset:
        changes = ", ".join(f"{name} = ?" for name in unset)
        conn.execute(f"UPDATE {table} SET {changes} WHERE {where}", [row[n] for n in unset] + params)


def _held_episode(conn: sqlite3.Connection, row: dict[str, Any]) -> sqlite3.Row | None:
    """The row here of the episode that ``row`` names."""
    held: sqlite3.Row | None = conn.execute(
        "SELECT * FROM episodes WHERE coalesce(job, -1) = ? AND label = ? AND rep = ?",
        (-1 if row["job"] is None else row["job"], row["label"], row["rep"]),
    ).fetchone()
    return held


def _merge_episode(conn: sqlite3.Connection, row: dict[str, Any], added: Counter[str]) -> int:
    row = {name: value for name, value in row.items() if name != "id"}
    held = _held_episode(conn, row)
    if held is None:
        added["episodes"] += 1
        return _add(conn, "episodes", row)
    if held["setup"] != row["setup"]:
        raise UserError(
            f"episode {row['label']} of job {row['job']} belongs to setup '{held['setup']}', "
            f"here to '{row['setup']}'"
        )
    _fill(conn, "episodes", dict(held), row, "id = ?", [held["id"]])
    if row["relaunches"] > held["relaunches"]:
        conn.execute("UPDATE episodes SET relaunches = ? WHERE id = ?", (row["relaunches"], held["id"]))
    return int(held["id"])


def _merge_grade(
    conn: sqlite3.Connection,
    row: dict[str, Any],
    episodes: dict[int, int],
    grades: dict[int, int],
    added: Counter[str],
) -> int:
    row = {name: value for name, value in row.items() if name != "id"}
    row["episode_id"] = episodes[row["episode_id"]]
    if row["of_grade_id"] is not None:
        row["of_grade_id"] = grades[row["of_grade_id"]]
    while True:
        held = conn.execute(
            "SELECT * FROM grades WHERE episode_id = ? AND kernel = ? AND ts_ms = ? AND kind = ?",
            (row["episode_id"], row["kernel"], row["ts_ms"], row["kind"]),
        ).fetchone()
        if held is None:
            added["grades"] += 1
            return _add(conn, "grades", row)
        if _same_grade(held, row):
            _fill(conn, "grades", dict(held), row, "id = ?", [held["id"]])
            return int(held["id"])
        # Two grades share a millisecond: the later one moves on, as it does when recorded.
        row["ts_ms"] += 1


def _same_grade(held: sqlite3.Row, row: dict[str, Any]) -> bool:
    """Whether two rows of one natural key are copies of one grade rather than two in one millisecond."""
    if held["of_grade_id"] is not None or row["of_grade_id"] is not None:
        stamps = {held["timing_reduction"], row["timing_reduction"]} - {None}
        return bool(held["of_grade_id"] == row["of_grade_id"]) and len(stamps) <= 1
    columns: tuple[str, ...] = ("status", "native_ns", "speedup")
    if held["request_id"] is not None and row["request_id"] is not None:
        columns = ("request_id",)
    return all(held[c] == row[c] for c in columns if held[c] is not None and row[c] is not None)
