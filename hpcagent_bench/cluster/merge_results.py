"""A job's shards and token records become its results.db; the jobs' results become the run's."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench.episodes import ingest, parse_label
from hpcagent_bench.errors import UserError
from hpcagent_bench.paths import write_atomic
from hpcagent_bench.results_db import (
    Episode,
    MergeReport,
    Setup,
    collapse_finals,
    create,
    open_ro,
    transaction,
)
from hpcagent_bench.results_merge import EMPTY, merge_file, raise_conflicts
from hpcagent_bench.results_record import SetupConflict, ensure_setup

MERGE_FAILED = "MERGE_FAILED"
RESULTS = "results.db"
WHOLE = "whole job"
"""Row of merge_state in a job's results.db: what it was merged from, written when all of it is in."""

_MAX_JSON_BYTES = 8 * 1024 * 1024
_WORKER = re.compile(r"^problem-(?P<problem>\w+)-worker-(?P<worker>\d+)$")


@dataclass(frozen=True)
class Served:
    """What a job's launcher filed about one worker: whose setup and episode its token stands for."""

    setup: Setup
    episode: Episode


def merge_job(job_dir: Path) -> Path:
    """Merge a job's judge shards and tokens.json files into ``<job_dir>/results.db`` and return its path.

    Can be repeated. A shard that cannot be read, or a setup described twice differently, leaves the file
    ``MERGE_FAILED`` with the reason beside whatever could be merged and raises UserError; success removes it.
    """
    target = job_dir / RESULTS
    try:
        _merge_into(target, job_dir)
    except (UserError, sqlite3.Error, OSError) as error:
        with contextlib.suppress(OSError):
            write_atomic(job_dir / MERGE_FAILED, f"{error}\n")
        raise UserError(f"{job_dir}: merge failed: {error}") from error
    (job_dir / MERGE_FAILED).unlink(missing_ok=True)
    return target


def _merge_into(target: Path, job_dir: Path) -> None:
    report = MergeReport()
    mark = _fingerprint(_parts(job_dir))
    conn = create(target)
    try:
        _merge_job_parts(conn, job_dir, report)
        raise_conflicts(report)
        shards = set(_shards(job_dir))
        lost = [f"{path}: {reason}" for path, reason in report.skipped if path in shards and reason != EMPTY]
        if lost:
            raise UserError(f"{len(lost)} judge shard(s) not merged: {'; '.join(lost)}")
        # Only now is the file known to hold all of the job; a merge killed before this is done over.
        _keep_mark(conn, WHOLE, mark)
    finally:
        conn.close()


def merge_run(run_root: Path) -> MergeReport:
    """Merge every job of a run into ``<run_root>/results.db``; nothing is written into a job's folder.

    A job without a merged results.db of its own (still running, or ended before it could merge) gives its
    shards and token records directly. Files unchanged since the last call are not read again. SetupConflict
    when two jobs describe one setup differently; unreadable files are named in the report.
    """
    if not run_root.is_dir():
        raise UserError(f"{run_root}: no such run folder")
    report = MergeReport()
    try:
        conn = create(run_root / RESULTS)
    except UserError as error:
        raise UserError(error.message, "delete this file: it is merged anew from the job folders") from None
    try:
        state = {row["source"]: row["mark"] for row in conn.execute("SELECT source, mark FROM merge_state")}
        for job_dir in job_dirs(run_root):
            mark = _fingerprint([job_dir / RESULTS, job_dir / f"{RESULTS}-wal", *_parts(job_dir)])
            if state.get(job_dir.name) == mark:
                report.unchanged.append(job_dir)
            elif _merge_one_job(conn, job_dir, report):
                _keep_mark(conn, job_dir.name, mark)
        if report.merged:  # a job read again brings back final rows that a regrade has rewritten since
            with transaction(conn):
                collapse_finals(conn)
    finally:
        conn.close()
    raise_conflicts(report)
    return report


def job_dirs(run_root: Path) -> list[Path]:
    """The job folders of a run: those named by a job number, in its order."""
    found = [path for path in run_root.iterdir() if path.name.isdigit() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name))


def _merge_one_job(conn: sqlite3.Connection, job_dir: Path, report: MergeReport) -> bool:
    """True when everything the job has was merged."""
    before = len(_unread(report))
    results = job_dir / RESULTS
    if results.is_file():
        merge_file(conn, results, report)
    if not _holds_all(job_dir):
        _merge_job_parts(conn, job_dir, report)
    return len(_unread(report)) == before


def _unread(report: MergeReport) -> list[Path]:
    return [path for path, reason in report.skipped if reason != EMPTY]


def _keep_mark(conn: sqlite3.Connection, source: str, mark: str) -> None:
    conn.execute("REPLACE INTO merge_state (source, mark) VALUES (?, ?)", (source, mark))


def _holds_all(job_dir: Path) -> bool:
    """Whether the job's results.db was merged to the end, from shards and records as they are now."""
    try:
        conn = open_ro(job_dir / RESULTS)
    except UserError:
        return False
    try:
        row = conn.execute("SELECT mark FROM merge_state WHERE source = ?", (WHOLE,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    finally:
        conn.close()
    return row is not None and row["mark"] == _fingerprint(_parts(job_dir))


def _merge_job_parts(conn: sqlite3.Connection, job_dir: Path, report: MergeReport) -> None:
    for shard in _shards(job_dir):
        merge_file(conn, shard, report)
    served = served_episodes(job_dir, report)
    records = _token_files(job_dir)
    if records:
        with transaction(conn):
            for record in records:
                _ingest_file(conn, job_dir, record, served, report)


def _shards(job_dir: Path) -> list[Path]:
    return sorted((job_dir / "judge").glob("rank-*/*.db"))


def _token_files(job_dir: Path) -> list[Path]:
    return sorted((job_dir / "agents").glob("*/*/tokens.json"))


def served_episodes(job_dir: Path, report: MergeReport | None = None) -> dict[str, Served]:
    """By label, what the job's launcher filed under ``fused-tokens/``; a broken record is reported."""
    found: dict[str, Served] = {}
    for path in sorted((job_dir / "fused-tokens").glob("*")):
        try:
            served = _served(_read_json(path))
        except (UserError, KeyError, TypeError, ValueError) as error:
            if report is not None:
                report.skipped.append((path, f"not a worker record ({error})"))
            continue
        found[served.episode.label] = served
    return found


def _served(record: dict[str, Any]) -> Served:
    names = Setup.__dataclass_fields__
    setup = Setup(**{key: value for key, value in record["setup"].items() if key in names})
    given = record["episode"]
    job = given.get("job")
    episode = Episode(
        setup=setup.setup,
        job=None if job is None else int(job),
        label=str(given["label"]),
        rep=int(given.get("rep") or 1),
        slot=int(given.get("slot") or 1),
        kernel=given.get("kernel"),
    )
    return Served(setup, episode)


def _ingest_file(
    conn: sqlite3.Connection, job_dir: Path, path: Path, served: dict[str, Served], report: MergeReport
) -> None:
    try:
        tokens = _read_json(path)
        label = tokens.get("episode_id")
        if not isinstance(label, str) or not _label_fits(label, path):
            raise UserError(f"episode_id {label!r} does not belong to this worker folder")
        mine = served.get(label)
        job = int(job_dir.name) if job_dir.name.isdigit() else None
        with _savepoint(conn):
            if mine is not None:
                ensure_setup(conn, vars(mine.setup))
            ingest(conn, tokens, mine.episode if mine else None, job)
    except SetupConflict as error:
        report.conflicts.append(f"{path}: {error.message}")
        report.skipped.append((path, error.message))
    except (UserError, sqlite3.DatabaseError, OSError) as error:
        report.skipped.append((path, str(error)))
    else:
        report.merged.append(path)


@contextlib.contextmanager
def _savepoint(conn: sqlite3.Connection) -> Iterator[None]:
    """A part of a transaction that is undone alone when it fails."""
    conn.execute("SAVEPOINT one_record")
    try:
        yield
    except BaseException:
        conn.execute("ROLLBACK TO one_record")
        raise
    finally:
        conn.execute("RELEASE one_record")


def _label_fits(label: str, path: Path) -> bool:
    """Whether a label is that of the folder the record lies in: one agent cannot speak for another."""
    parts, worker = parse_label(label), _WORKER.match(path.parent.name)
    if parts is None or worker is None:
        return False
    node = path.parent.parent.name
    where = (node, worker["problem"], int(worker["worker"]))
    return where == (f"node-{parts.node}", parts.problem, parts.worker)


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a folder an agent may write to: a plain file, no link, of bounded size."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})") from None
    with os.fdopen(fd, "rb") as handle:
        if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
            raise UserError("not a plain file")
        raw = handle.read(_MAX_JSON_BYTES + 1)
    if len(raw) > _MAX_JSON_BYTES:
        raise UserError(f"larger than {_MAX_JSON_BYTES} bytes")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise UserError("not JSON") from None
    if not isinstance(value, dict):
        raise UserError("not a JSON object")
    return value


def _parts(job_dir: Path) -> Iterator[Path]:
    for shard in _shards(job_dir):
        yield shard
        yield shard.with_name(f"{shard.name}-wal")
    yield from _token_files(job_dir)


def _fingerprint(files: Iterable[Path]) -> str:
    """A digest that changes when a file appears or changes: name, size and mtime of each."""
    return hashlib.sha256(repr(list(_stats(files))).encode()).hexdigest()


def _stats(paths: Iterable[Path]) -> Iterator[str | int]:
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_size == 0:
            # A reader leaves an empty write-ahead log behind: as good as none.
            continue
        yield from (str(path), found.st_size, found.st_mtime_ns)
