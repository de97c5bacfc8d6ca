"""The databases a ``grade-under run`` writes: final grades, promotions, calibrations."""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import results_db
from hpcagent_bench.errors import UserError
from hpcagent_bench.finals import JUDGE_FAULTS
from hpcagent_bench.regrade.items import Item, natural_key
from hpcagent_bench.results_file import is_blank
from hpcagent_bench.results_merge import copy_episode, copy_grade
from hpcagent_bench.results_record import add_grade

FINALS = "regrade-cells-{}.db"
PROMOTIONS = "regrade-{}.db"
CALIBRATIONS = "regrade-aa-{}.db"


@dataclass(frozen=True)
class Outputs:
    """The output folder of one shard. Several shards may write into one folder at once."""

    folder: Path
    shard: int

    @contextlib.contextmanager
    def alone(self, aa: bool) -> Iterator[None]:
        """Hold this shard; a second process on the same one, which would grade the same, is a UserError."""
        path = self.folder / f".regrade-{'aa-' if aa else ''}{self.shard}.lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = path.open("a")
        except OSError as error:
            raise UserError(f"--out-dir {self.folder}: {error.strerror}", "name a folder to write") from None
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(
                    f"shard {self.shard} is being graded into {self.folder} by another process",
                    "wait for it or name another --out-dir",
                ) from None
            yield

    def path(self, item: Item, aa: bool) -> Path:
        """The database the item's grade goes to."""
        name = CALIBRATIONS if aa else PROMOTIONS if item.promoted else FINALS
        return self.folder / name.format(self.shard)

    def held(self, stamp: str) -> set[str]:
        """Keys and request ids that any shard has graded under ``stamp``; judge faults are tried again."""
        found: set[str] = set()
        for path in sorted(self.folder.glob("regrade-*.db")):
            if is_blank(path):
                continue
            with contextlib.closing(results_db.open_ro(path)) as conn:
                found.update(_held(conn, stamp))
        return found


def _held(conn: sqlite3.Connection, stamp: str) -> Iterator[str]:
    faults = ", ".join(f"'{status}'" for status in JUDGE_FAULTS)
    fine = f"(g.status NOT IN ({faults}) OR g.reason LIKE 'task:%')"
    rows = conn.execute(
        "SELECT e.job, e.label, e.rep, p.kernel, p.kind, p.ts_ms FROM grades g "
        "JOIN grades p ON p.id = g.of_grade_id JOIN episodes e ON e.id = g.episode_id "
        f"WHERE g.kind = 'final' AND g.timing_reduction = ? AND {fine}",
        (stamp,),
    )
    yield from (natural_key(*row) for row in rows)
    promoted = f"SELECT request_id FROM grades g WHERE kind = 'promoted' AND timing_reduction = ? AND {fine}"
    yield from (row[0] for row in conn.execute(promoted, (stamp,)))


def add_final(path: Path, source: sqlite3.Connection, item_row: sqlite3.Row, final: results_db.Grade) -> None:
    """Commit one final grade with a copy of the submission it is of; an earlier judge fault gives way."""
    conn = results_db.create(path)
    try:
        with results_db.transaction(conn):
            of_grade = copy_grade(conn, source, item_row["id"])
            conn.execute(
                "DELETE FROM grades WHERE of_grade_id = ? AND timing_reduction = ?",
                (of_grade, final.timing_reduction),
            )
            episode = conn.execute("SELECT episode_id FROM grades WHERE id = ?", (of_grade,)).fetchone()[0]
            add_grade(conn, episode, final, of_grade)
    finally:
        conn.close()


def add_promotion(
    path: Path,
    source: sqlite3.Connection,
    item_row: sqlite3.Row,
    promoted: results_db.Grade,
    final: results_db.Grade | None,
) -> None:
    """Commit one promotion with its final row; an earlier judge fault of the same promotion gives way."""
    conn = results_db.create(path)
    try:
        with results_db.transaction(conn):
            episode = copy_episode(conn, source, item_row["episode_id"])
            conn.execute(
                "DELETE FROM grades WHERE episode_id = ? AND kind = 'promoted' AND request_id = ?",
                (episode, promoted.request_id),
            )
            grade = add_grade(conn, episode, promoted)
            if final is not None:
                add_grade(conn, episode, final, grade)
    finally:
        conn.close()
