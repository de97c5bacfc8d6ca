"""Opening results databases: one schema, one version, journal by file system, one transaction at a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcagent_bench.errors import UserError
from hpcagent_bench.paths import package_root

VERSION = 6
"""``PRAGMA user_version`` of schema.sql. Readers accept exactly this one."""

BUSY_MS = 30_000

_WAL_FILE_SYSTEMS = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "ramfs", "overlay", "apfs"}
)
_TABLES = frozenset({"setups", "episodes", "sources", "grades", "grade_sources", "grade_cells"})


class LockedConnection(sqlite3.Connection):
    """A connection that several threads may hold; ``transaction`` lets one of them in at a time."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.lock = threading.RLock()


def file_system(path: Path) -> str:
    """Type of the file system that holds ``path`` ('' when it cannot be told)."""
    probe = path.resolve()
    best, kind = -1, ""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields, types = left.split(), right.split()
        if len(fields) < 5 or not types:
            continue
        point = fields[4].encode().decode("unicode_escape")
        # Later lines shadow earlier ones on the same mount point, hence >=.
        if len(point) >= best and probe.is_relative_to(point):
            best, kind = len(point), types[0]
    return kind


def journal_mode(path: Path) -> str:
    """``wal`` on a local file system; ``delete`` on any other, where WAL's shared memory does not work."""
    return "wal" if file_system(path.parent) in _WAL_FILE_SYSTEMS else "delete"


def _connect(path: Path, mode: str) -> LockedConnection:
    quoted = path.resolve().as_uri()
    try:
        conn = sqlite3.connect(
            f"{quoted}?mode={mode}",
            uri=True,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            factory=LockedConnection,
        )
    except sqlite3.OperationalError as error:
        raise UserError(f"{path}: cannot open this results database ({error})") from None
    conn.row_factory = sqlite3.Row
    return conn


def _check_version(conn: sqlite3.Connection, path: Path) -> None:
    try:
        version = int(conn.execute("PRAGMA user_version").fetchone()[0])
        names = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: not a readable results database ({error})") from None
    if version != VERSION:
        raise UserError(
            f"{path}: results schema version {version}, this program reads version {VERSION}",
            "migrate the file or read it with the program that wrote it",
        )
    missing = sorted(_TABLES - names)
    if missing:
        raise UserError(f"{path}: not a results database, table '{missing[0]}' is missing")


def schema_statements() -> list[str]:
    """The statements of schema.sql, one by one, so that they can run inside a transaction."""
    found: list[str] = []
    pending = ""
    for line in (package_root() / "schema.sql").read_text().splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found


def _install(conn: sqlite3.Connection) -> None:
    """Create the schema in an empty file; of two processes at once one does it, the other finds it done."""
    with transaction(conn):
        if conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in schema_statements():
                conn.execute(statement)
            conn.execute(f"PRAGMA user_version = {VERSION}")


def _set_journal(conn: sqlite3.Connection, wanted: str) -> None:
    """Switch the journal mode; the switch needs the file alone and does not wait for it, so it is retried."""
    for _ in range(200):
        try:
            if conn.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
                conn.execute(f"PRAGMA journal_mode = {wanted}")
            return
        except sqlite3.OperationalError:
            time.sleep(0.01)
    # Another process keeps the file open in the other mode, which is as safe: go on with it.


def create(path: Path) -> LockedConnection:
    """Open ``path`` for writing, making the file, its folder and the schema when absent.

    UserError when the file is something else or of another schema version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    conn = _connect(path, "rwc")
    try:
        conn.execute("PRAGMA foreign_keys = ON")
        _set_journal(conn, journal_mode(path))
        conn.execute("PRAGMA synchronous = FULL")
        _install(conn)
        _check_version(conn, path)
    except sqlite3.DatabaseError as error:
        conn.close()
        raise UserError(f"{path}: not a usable results database ({error})") from None
    except BaseException:
        conn.close()
        raise
    return conn


def is_blank(path: Path) -> bool:
    """Whether ``path`` is a database in which nothing was ever created (zero bytes count)."""
    try:
        conn = _connect(path, "ro")
    except UserError:
        return False
    try:
        return bool(conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0)
    except sqlite3.DatabaseError:
        return False
    finally:
        conn.close()


def open_rw(path: Path) -> LockedConnection:
    """Open an existing results database for writing; UserError when it is absent."""
    if not path.is_file():
        raise UserError(f"{path}: no such results database")
    return create(path)


def open_ro(path: Path) -> LockedConnection:
    """Open an existing results database read-only; UserError when absent, foreign or of another version.

    A writer killed in the middle leaves a journal that only a writing open can roll back; where the file may
    be written, that recovery is done first. It never changes committed rows.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such results database")
    conn = _connect(path, "ro")
    try:
        conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        conn.close()
        conn = _connect(path, "rw")
    except sqlite3.DatabaseError as error:
        conn.close()
        raise UserError(f"{path}: not a readable results database ({error})") from None
    try:
        _check_version(conn, path)
        conn.execute("PRAGMA query_only = ON")
    except BaseException:
        conn.close()
        raise
    return conn


@contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One write transaction: taken at once (BEGIN IMMEDIATE), committed whole or rolled back whole."""
    lock = getattr(conn, "lock", None) or threading.RLock()
    with lock:
        conn.execute("BEGIN IMMEDIATE")
        try:
            yield conn
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
