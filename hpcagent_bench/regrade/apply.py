"""The grades of ``grade-under run`` back into a results database (scoring.md X5)."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench import protocols, results_db
from hpcagent_bench.errors import UserError, did_you_mean
from hpcagent_bench.finals import calibrates
from hpcagent_bench.results_collapse import OnProtocolChange, collapse_promotions
from hpcagent_bench.results_merge import EMPTY, MergeReport, merge_file, raise_conflicts

CALIBRATION_STAMPS = frozenset(stamp for stamp in protocols.REGISTRY if calibrates(stamp))
PATTERNS = ("regrade-cells-*.db", "regrade-[0-9]*.db")
"""The databases of an output folder that are applied; calibrations are nobody's grades."""


@dataclass
class Applied:
    """What an apply changed: shards read, grade rows gained by kind, final rows that are no more.

    ``strangers`` are grades of episodes that the database does not hold.
    """

    into: Path
    shards: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    strangers: int = 0
    skipped: list[tuple[Path, str]] = field(default_factory=list)

    def line(self) -> str:
        """``k shard(s) -> DB: r rows {...}; x superseded final rows``."""
        kinds = ", ".join(f"{kind}: {number}" for kind, number in sorted(self.rows.items()))
        return (
            f"{self.shards} shard(s) -> {self.into}: {sum(self.rows.values())} rows {{{kinds}}}; "
            f"{self.superseded} superseded final rows"
        )

    def to_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "into": str(self.into),
            "shards": self.shards,
            "rows": dict(sorted(self.rows.items())),
            "superseded": self.superseded,
            "strangers": self.strangers,
            "skipped": [[str(path), reason] for path, reason in self.skipped],
        }


def protocol_change(text: str) -> OnProtocolChange:
    """``--on-protocol-change`` as typed; UserError for another word."""
    known: dict[str, OnProtocolChange] = {"new-row": "new-row", "replace": "replace"}
    if text not in known:
        raise UserError(f"--on-protocol-change {text}: not known", did_you_mean(text, known))
    return known[text]


def output_files(outputs: Iterable[Path]) -> list[Path]:
    """The databases of the named files and folders, each once; UserError for what is neither."""
    found: list[Path] = []
    for path in outputs:
        if path.is_dir():
            inside = [file for pattern in PATTERNS for file in sorted(path.glob(pattern))]
            if not inside:
                raise UserError(f"{path}: no output of grade-under run in it", "name its --out-dir")
            found.extend(inside)
        elif path.is_file():
            found.append(path)
        else:
            raise UserError(f"{path}: no such file or folder", "name the --out-dir of grade-under run")
    return list(dict.fromkeys(path.resolve() for path in found))


def apply(into: Path, outputs: Sequence[Path], on_protocol_change: OnProtocolChange = "new-row") -> Applied:
    """Merge the outputs into ``into`` by natural key, then leave one final row a submission and protocol.

    Applying again changes nothing. Calibration rows stay out, and so do grades of episodes that ``into`` does
    not hold. A file that cannot be read is named in the
    result; SetupConflict when one describes a setup differently.
    """
    files = output_files(outputs)
    done = Applied(into)
    report = MergeReport()
    conn = results_db.open_rw(into)
    try:
        before = _grades(conn)
        for path in files:
            merge_file(conn, path, report, leave=CALIBRATION_STAMPS, known_only=True)
        incoming = _incoming(conn, report.merged)
        with results_db.transaction(conn):
            results_db.collapse_finals(conn, on_protocol_change, incoming)
            collapse_promotions(conn)
        after = _grades(conn)
    finally:
        conn.close()
    done.shards = len(report.merged)
    done.strangers = report.strangers
    done.skipped = [(path, reason) for path, reason in report.skipped if reason != EMPTY]
    done.rows = Counter(row.kind for row in after - before)
    done.superseded = sum(row.kind == "final" for row in before - after)
    raise_conflicts(report)
    return done


@dataclass(frozen=True)
class _Row:
    """What tells a grade row from another one, its id set aside."""

    episode: int
    kernel: str
    kind: str
    ts_ms: int
    of_grade: int | None
    stamp: str | None


def _grades(conn: sqlite3.Connection) -> set[_Row]:
    rows = conn.execute("SELECT episode_id, kernel, kind, ts_ms, of_grade_id, timing_reduction FROM grades")
    return {_Row(*row) for row in rows}


_FINALS = """
SELECT coalesce(e.job, -1) AS job, e.label, e.rep, p.kernel, p.kind, p.ts_ms, g.timing_reduction
FROM grades g JOIN grades p ON p.id = g.of_grade_id JOIN episodes e ON e.id = g.episode_id
WHERE g.kind = 'final' AND g.timing_reduction IS NOT NULL ORDER BY g.ts_ms
"""

_SUBMISSION = """
SELECT g.id FROM grades g JOIN episodes e ON e.id = g.episode_id
WHERE coalesce(e.job, -1) = ? AND e.label = ? AND e.rep = ? AND g.kernel = ? AND g.kind = ? AND g.ts_ms = ?
"""


def _incoming(conn: sqlite3.Connection, files: Iterable[Path]) -> dict[int, str]:
    """Submission's grade id to the protocol of the newest final row that the files hold for it.

    Read from the files: what an interrupted apply has merged already counts as incoming all the same.
    """
    found: dict[int, str] = {}
    for path in files:
        with contextlib.closing(results_db.open_ro(path)) as source:
            finals = [row for row in source.execute(_FINALS) if not calibrates(row["timing_reduction"])]
        for *key, stamp in finals:
            held = conn.execute(_SUBMISSION, key).fetchone()
            if held is not None:
                found[held[0]] = stamp
    return found


@contextlib.contextmanager
def with_outputs(results: Path, outputs: Sequence[Path]) -> Iterator[Path]:
    """A copy of a results database to which the outputs are applied: what it would say with them."""
    with tempfile.TemporaryDirectory(prefix="hpcagent-regrades-") as folder:
        copy = Path(folder) / results.name
        source = results_db.open_ro(results)
        target = sqlite3.connect(copy)
        try:
            source.backup(target)
        finally:
            target.close()
            source.close()
        apply(copy, outputs)
        yield copy
