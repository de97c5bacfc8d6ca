"""One final row per submission and protocol (scoring.md X5): a regrade rewrites, adds or replaces."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

from hpcagent_bench import protocols
from hpcagent_bench.finals import Final, calibrates, final_of

OnProtocolChange = Literal["new-row", "replace"]

_CHILDREN = ("grade_cells", "grade_sources", "scaling_grades", "scaling_points")
_KEPT = frozenset({"id", "episode_id", "kernel", "kind", "of_grade_id"})
"""Columns a rewritten row keeps: its id, and whose grade it is."""


def collapse_finals(
    conn: sqlite3.Connection,
    on_protocol_change: OnProtocolChange = "new-row",
    incoming: Mapping[int, str] | None = None,
    stamp: str = protocols.FINAL.stamp,
) -> int:
    """Leave each submission one final row per protocol; returns how many rows went. In a transaction.

    Rows under one protocol, and one that names none, become a single row: it keeps the lowest id and takes
    the content of the row that stands (a named one, a grade before a judge fault, then the newest). A row
    under another protocol stays beside it; with ``replace`` it goes when ``incoming`` (submission's grade id
    to the protocol of its regrade) names another one and that regrade is no judge fault. An unnamed row
    beside several protocols belongs to ``stamp``. Calibration rows are not touched.
    """
    gone = 0
    for of_grade, finals in _several(conn).items():
        kept = [_into_one(conn, rows) for rows in _by_protocol(finals, stamp)]
        new = (incoming or {}).get(of_grade) if on_protocol_change == "replace" else None
        if new is not None and any(f.stamp == new and not f.fault for f in kept):
            for final in [f for f in kept if f.stamp != new]:
                kept.remove(final)
                _delete(conn, final)
        gone += len(finals) - len(kept)
    return gone


def collapse_promotions(conn: sqlite3.Connection) -> int:
    """Leave one row of each promotion (one request id); returns how many went. In a transaction.

    Two runs of one worklist promote the same source: the newest that is no judge fault stands.
    """
    groups: dict[tuple[int, str], list[Final]] = defaultdict(list)
    rows = conn.execute("SELECT * FROM grades WHERE kind = 'promoted' AND request_id IS NOT NULL")
    for row in rows:
        groups[row["episode_id"], row["request_id"]].append(final_of(row))
    gone = 0
    for made in groups.values():
        for one in sorted(made, key=lambda f: f.precedence(None))[:-1]:
            _delete(conn, one)
            gone += 1
    return gone


def _several(conn: sqlite3.Connection) -> dict[int, list[Final]]:
    """The final rows of every submission that holds more than one, calibration rows left out."""
    found: dict[int, list[Final]] = defaultdict(list)
    rows = conn.execute(
        "SELECT * FROM grades WHERE kind = 'final' AND of_grade_id IN "
        "(SELECT of_grade_id FROM grades WHERE kind = 'final' GROUP BY of_grade_id HAVING count(*) > 1)"
    )
    for row in rows:
        final = final_of(row)
        if not calibrates(final.stamp):
            found[row["of_grade_id"]].append(final)
    return found


def _by_protocol(finals: Iterable[Final], stamp: str) -> list[list[Final]]:
    """Groups that become one row each; unnamed rows join the credited protocol's, else any other's."""
    groups: dict[str | None, list[Final]] = defaultdict(list)
    for final in finals:
        groups[final.stamp].append(final)
    unnamed = groups.pop(None, [])
    if unnamed:
        named = stamp if stamp in groups else max(groups, key=str, default=None)
        groups[named].extend(unnamed)
    return list(groups.values())


def _into_one(conn: sqlite3.Connection, finals: list[Final]) -> Final:
    """Write the row that stands over the one with the lowest id; the others go."""
    chosen = max(finals, key=lambda f: f.precedence(None))
    first = min(finals, key=lambda f: f.grade_id or 0)
    for final in finals:
        if final is not chosen and final is not first:
            _delete(conn, final)
    if chosen is first:
        return chosen
    row = conn.execute("SELECT * FROM grades WHERE id = ?", (chosen.grade_id,)).fetchone()
    values = {name: row[name] for name in row.keys() if name not in _KEPT}  # noqa: SIM118
    for table in _CHILDREN:
        conn.execute(f"DELETE FROM {table} WHERE grade_id = ?", (first.grade_id,))
    for table in ("grade_cells", "grade_sources"):
        conn.execute(f"UPDATE {table} SET grade_id = ? WHERE grade_id = ?", (first.grade_id, chosen.grade_id))
    conn.execute("DELETE FROM grades WHERE id = ?", (chosen.grade_id,))
    changes = ", ".join(f"{name} = :{name}" for name in values)
    conn.execute(f"UPDATE grades SET {changes} WHERE id = :id", {**values, "id": first.grade_id})
    return dataclasses.replace(chosen, grade_id=first.grade_id)


def _delete(conn: sqlite3.Connection, final: Final) -> None:
    conn.execute("DELETE FROM grades WHERE id = ?", (final.grade_id,))
