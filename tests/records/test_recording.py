"""One grade is one transaction: whole rows or none, natural keys, checks, versions."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from records_help import SETUP, TABLES, dump, episode, grade, submit  # type: ignore[import-not-found, unused-ignore]

from hpcagent_bench import results_file
from hpcagent_bench.errors import UserError
from hpcagent_bench.results_db import (
    Cell,
    Episode,
    Grade,
    Setup,
    SetupConflict,
    create,
    next_call_index,
    open_ro,
    open_rw,
    record,
)


def count(conn: sqlite3.Connection, table: str) -> int:
    return int(conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_submission_its_final_and_its_parts_are_written_together(tmp_path: Path) -> None:
    conn = create(tmp_path / "deep" / "a.db")
    final = grade(kind="final", status="graded", credited_speedup=1.5)
    ids = record(conn, SETUP, episode(), grade(credited_speedup=1.5), final)
    assert ids == (1, 2)
    assert [count(conn, table) for table in TABLES] == [1, 1, 1, 2, 2, 8]
    row = conn.execute("SELECT * FROM grades_flat WHERE kind = 'final'").fetchone()
    assert (row["of_grade_id"], row["setup"], row["credited_speedup"]) == (1, SETUP.setup, 1.5)
    text = conn.execute("SELECT text FROM sources WHERE hash = ?", (hashlib.sha256(b"/* k0 */").hexdigest(),))
    assert text.fetchone()[0] == "/* k0 */"


def test_numpy_values_lists_and_nan_are_stored_as_plain_values(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    cell = Cell(0, shape={"N": np.int64(7)}, correct=np.bool_(True), ratio=np.float64(1.25))  # type: ignore[arg-type]
    commands = ["gcc -O3 k.c"]
    record(
        conn,
        SETUP,
        episode(),
        Grade("k0", "score", build_commands=commands, speedup=float("nan"), cells=(cell,)),
    )
    held = conn.execute("SELECT g.*, c.* FROM grades g JOIN grade_cells c ON c.grade_id = g.id").fetchone()
    assert (held["build_commands"], held["speedup"]) == ('["gcc -O3 k.c"]', None)
    assert conn.execute("SELECT shape, correct, ratio FROM grade_cells").fetchone()[:] == (
        '{"N": 7}',
        1,
        1.25,
    )


def test_grades_of_one_millisecond_move_to_the_next_free_one(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    for ts in (50, 51, 53, 50, 50):
        record(conn, SETUP, episode(), grade(ts_ms=ts))
    record(conn, SETUP, episode(), grade(kind="score", ts_ms=50))
    stamps = conn.execute("SELECT ts_ms FROM grades WHERE kind = 'submit' ORDER BY id").fetchall()
    assert [s[0] for s in stamps] == [50, 51, 53, 52, 54]
    assert conn.execute("SELECT ts_ms FROM grades WHERE kind = 'score'").fetchone()[0] == 50


def test_call_indexes_count_per_episode_kernel_and_kind(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    assert next_call_index(conn, episode(), "k0", "score") == 1
    for who, kind in (
        (episode(0), "score"),
        (episode(0), "score"),
        (episode(0), "submit"),
        (episode(1), "score"),
    ):
        record(conn, SETUP, who, grade(kind=kind))
    assert next_call_index(conn, episode(0), "k0", "score") == 3
    assert next_call_index(conn, (100001, episode(0).label, 1), "k0", "submit") == 2
    assert next_call_index(conn, episode(0), "other", "score") == 1


@pytest.mark.parametrize(
    "broken",
    [
        grade(kind="guess"),
        grade(credited_speedup=1.5, correct=False),
        grade(credited_speedup=1.5, build_ok=None),
        grade(credited_speedup=0.0),
        grade(status="fine"),
        grade(denominator="best-of(c,numba)"),
        grade(kind="final"),
        grade(requested_build="not json"),
        grade(ts_ms=0),
    ],
)
def test_rows_that_break_a_rule_leave_nothing_behind(tmp_path: Path, broken: Grade) -> None:
    conn = create(tmp_path / "a.db")
    with pytest.raises(sqlite3.IntegrityError):
        record(conn, SETUP, episode(), broken)
    assert [count(conn, table) for table in TABLES] == [0] * len(TABLES)


def test_a_bad_final_takes_its_submission_back(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    with pytest.raises(sqlite3.IntegrityError):
        record(conn, SETUP, episode(), grade(), grade(kind="final", cells=(Cell(0), Cell(0))))
    assert count(conn, "grades") == count(conn, "setups") == 0


def test_a_setup_keeps_its_first_row_and_only_gaps_are_filled(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    record(conn, Setup("s", language="c"), Episode("s", 1, "s.n0.p0.w0"), grade())
    record(conn, Setup("s", study="quick", model="m1", language="c"), Episode("s", 1, "s.n0.p1.w0"), grade())
    record(conn, Setup("s", language="c"), Episode("s", 1, "s.n0.p2.w0"), grade())
    held = conn.execute("SELECT study, model, packet FROM setups").fetchone()
    assert tuple(held) == ("quick", "m1", "")
    for other in (Setup("s", model="m2"), Setup("s", packet="cpf-src"), Setup("s", device="gpu")):
        with pytest.raises(SetupConflict, match="setup 's' is recorded with"):
            record(conn, other, Episode("s", 1, "s.n0.p3.w0"), grade())
    assert count(conn, "grades") == 3


def test_an_episode_key_never_changes_its_setup(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    record(conn, SETUP, episode(), grade())
    with pytest.raises(UserError, match="is recorded for setup 'quick-c-auto'"):
        record(conn, Setup("b"), Episode("b", 100001, episode().label), grade())
    assert count(conn, "setups") == 1


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from records_help import SETUP, episode, grade  # type: ignore[import-not-found, unused-ignore]
from hpcagent_bench.results_db import create, record
conn = create(Path(sys.argv[1]))
for n in range(100000):
    record(conn, SETUP, episode(n % 7), grade(f"k{n % 7}", ts_ms=n + 1, credited_speedup=2.0),
           grade(f"k{n % 7}", "final", ts_ms=n + 1, credited_speedup=2.0))
    print(n, flush=True)
"""


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("acknowledged", [0, 5, 17])
def test_a_killed_writer_leaves_whole_grades_and_every_acknowledged_one(
    tmp_path: Path, journal: str, acknowledged: int
) -> None:
    path = tmp_path / "a.db"
    create(path).execute(f"PRAGMA journal_mode = {journal}").connection.close()
    argv = [sys.executable, "-c", WRITER, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(acknowledged + 1):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    conn = open_ro(path)
    submits = conn.execute("SELECT count(*) FROM grades WHERE kind = 'submit'").fetchone()[0]
    assert submits >= acknowledged + 1
    whole = "SELECT count(*) FROM grade_cells GROUP BY grade_id HAVING count(*) <> 4"
    assert count(conn, "grades") == 2 * submits == count(conn, "grade_sources")
    assert conn.execute(whole).fetchall() == []
    assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_threads_of_one_judge_share_a_connection(tmp_path: Path) -> None:
    conn = create(tmp_path / "a.db")
    barrier = threading.Barrier(8)

    def write(n: int) -> None:
        barrier.wait()
        for _ in range(5):
            record(conn, SETUP, episode(n), grade(f"k{n}", ts_ms=9))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert count(conn, "grades") == 40
    assert conn.execute("SELECT max(call_index) FROM grades").fetchone()[0] == 5


def test_two_processes_creating_one_file_both_succeed(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from hpcagent_bench.results_db import create; "
    code += "print(create(Path(sys.argv[1])).execute('SELECT count(*) FROM grades').fetchone()[0])"
    argv = [sys.executable, "-c", code, str(tmp_path / "new.db")]
    children = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [child.communicate()[0].strip() for child in children] == ["0"] * 3


@pytest.mark.parametrize("opener", [open_ro, open_rw])
def test_foreign_files_and_other_versions_are_refused_by_name(tmp_path: Path, opener: object) -> None:
    assert callable(opener)
    missing, text, other = (tmp_path / name for name in ("none.db", "text.db", "other.db"))
    text.write_text("not a database " * 100)
    create(other).execute("PRAGMA user_version = 5").connection.close()
    for path, words in (
        (missing, "no such"),
        (text, "not a"),
        (other, "version 5, this program reads version 6"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            opener(path)
        assert str(path) in str(caught.value)
    assert not missing.exists()
    assert text.read_text().startswith("not a database")


def test_a_read_only_connection_writes_nothing(tmp_path: Path) -> None:
    submit(create(tmp_path / "a.db"), episode())
    before = dump(tmp_path / "a.db")
    with pytest.raises(sqlite3.OperationalError):
        open_ro(tmp_path / "a.db").execute("DELETE FROM grades")
    assert dump(tmp_path / "a.db") == before


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("ext4", "wal"), ("tmpfs", "wal"), ("nfs4", "delete"), ("lustre", "delete"), ("", "delete")],
)
def test_the_journal_follows_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    monkeypatch.setattr(results_file, "file_system", lambda path: kind)
    conn = create(tmp_path / "a.db")
    submit(conn, episode())
    assert conn.execute("PRAGMA journal_mode").fetchone()[0] == mode
    assert count(open_ro(tmp_path / "a.db"), "grades") == 2


def test_the_file_system_is_read_from_the_deepest_mount() -> None:
    assert results_file.file_system(Path("/proc/self")) == "proc"
    assert results_file.file_system(Path("/dev/shm")) == "tmpfs"
