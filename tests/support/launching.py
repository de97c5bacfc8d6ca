"""What tests of real runs share: launching, waiting, stopping a grade halfway, checking what was recorded."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.scheduler import Process, this_process
from hpcagent_bench import results_db
from hpcagent_bench.results_file import is_blank

KERNELS = ("ext_war_unit", "tsvc_2_s311")
SETUP = "quickstart-c-reference"
LINE = ("+study=quickstart", "sizes=tiny", f"kernels={','.join(KERNELS)}", "setups=*-reference")
"""One job of two kernels, each submitted once; words of a test's own come after it."""

UNTOUCHED = "infra: a job was given it and left no episode"
CANCELLED = "infra: cancelled: the job ended under the agent"
"""Why a killed job owes what it was given: what it had not begun, and what it was at."""

Done = subprocess.CompletedProcess[str]


def launch(*words: str) -> Done:
    """The command as one types it."""
    return _run("experiments.launch", *words)


def owed_of(run: Path) -> dict[str, str]:
    """By kernel, why ``owed collect`` owes it; of what ``LINE`` launches, not of the whole study."""
    done = _run("hpcagent_bench.cli", "owed", "collect", "--json", "--runs", str(run))
    assert done.returncode == 0, done.stderr
    (state,) = json.loads(done.stdout)
    mine = [item for item in state["owed"] if item["setup"] == SETUP and item["kernel"] in KERNELS]
    return {item["kernel"]: f"{item['class']}: {item['reason']}" for item in mine}


def _run(module: str, *words: str) -> Done:
    argv = [sys.executable, "-m", module, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)


def until(done: Callable[[], Any], limit_s: float = 120.0, pause_s: float = 0.1) -> Any:
    """Wait for a true answer and return it."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(pause_s)
    raise AssertionError("it never came to that")


def the_run(runs: Path = Path("runs")) -> Path:
    """The one run root there is."""
    (run,) = runs.absolute().glob("quickstart-*")
    return run


# Processes


def processes_below(folder: Path) -> list[int]:
    """Processes whose command line or working folder names ``folder``."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def family(pid: int) -> list[Process]:
    """A process and everything it started, and they in turn; whatever their groups, sessions and seals."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return [this_process(number) for number in found]


def kill(processes: Iterable[Process]) -> None:
    """SIGKILL to those that still run."""
    for process in processes:
        if process.alive():
            os.kill(process.pid, signal.SIGKILL)


def pointers(run: Path) -> dict[Path, int]:
    """By job folder, the process of every job that has started."""
    found = [json.loads(path.read_text()) for path in run.glob("waves/*.job.json")]
    return {run / str(pointer["job"]): pointer["pid"] for pointer in found}


def judge_of(job: Path) -> int:
    """The judge's process."""
    return int(json.loads((job / "judge" / "rank-0" / "service.json").read_text())["pid"])


def driver_of(job: Path) -> int:
    """The driver's process."""
    (found,) = processes_below(job / "driver.json")
    return found


def gone(processes: list[Process], run: Path) -> bool:
    """Whether nothing of a job is left: not what it started, nor anything that names its run."""
    return not any(process.alive() for process in processes) and not processes_below(run)


# A grade stopped halfway


def hold_grade(run: Path) -> tuple[Path, str]:
    """Stop the judge (SIGSTOP) in the middle of timing a submission; the job's folder and the kernel."""

    def held() -> tuple[Path, str] | None:
        for job in pointers(run):
            if _timing(job):
                os.kill(judge_of(job), signal.SIGSTOP)
                now = _timing(job)
                if now:
                    return job, str(now["kernel"])
                os.kill(judge_of(job), signal.SIGCONT)
        return None

    found: tuple[Path, str] = until(held, pause_s=0.005)
    return found


def _timing(job: Path) -> dict[str, Any] | None:
    try:
        told = json.loads((job / "judge" / "rank-0" / "progress.json").read_text())
    except (OSError, ValueError):
        return None
    halfway = told["phase"] == "timing" and told.get("route") == "submit" and told["input"] < told["inputs"]
    return dict(told) if halfway else None


# What was recorded


def check_records(run: Path) -> dict[str, int]:
    """Assert that no database of the run holds a half row or credits anything twice.

    Returns by kernel how many answered episodes the merged results hold.
    """
    for path in [*run.glob("*/judge/*/*.db"), *run.glob("*/results.db"), run / "results.db"]:
        if path.is_file() and not is_blank(path):
            with contextlib.closing(results_db.open_ro(path)) as conn:
                _check_whole(conn)
    with contextlib.closing(results_db.open_ro(run / "results.db")) as conn:
        answered = _answered(conn)
    assert set(answered.values()) <= {1}, answered
    return answered


def _check_whole(conn: sqlite3.Connection) -> None:
    assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    for row in conn.execute("SELECT id, kind, status FROM grades").fetchall():
        cells = _count(conn, "grade_cells WHERE grade_id = ?", row["id"])
        sources = _count(conn, "grade_sources JOIN sources USING (hash) WHERE grade_id = ?", row["id"])
        finals = _count(conn, "grades WHERE kind = 'final' AND of_grade_id = ?", row["id"])
        wanted = {"submit": (4, 1, row["status"] == "ok"), "final": (4, 0, 0)}[row["kind"]]
        assert (cells, sources, finals) == wanted, tuple(row)


def _count(conn: sqlite3.Connection, where: str, grade: int) -> int:
    return int(conn.execute(f"SELECT count(*) FROM {where}", (grade,)).fetchone()[0])


def _answered(conn: sqlite3.Connection) -> dict[str, int]:
    rows = conn.execute(
        "SELECT e.setup, e.kernel, e.slot, count(*) FROM grades g JOIN episodes e ON e.id = g.episode_id "
        "WHERE g.kind = 'final' AND g.credited_speedup IS NOT NULL AND NOT coalesce(e.cancelled, 0) "
        "GROUP BY e.setup, e.kernel, e.slot"
    )
    return {row["kernel"]: row[3] for row in rows}


def the_same_line_runs(owed: set[str], run: Path, *words: str) -> None:
    """Launch again: exactly what was owed runs, everything is delivered, and grades name their code."""
    again = launch(*LINE, *words, "--json")
    assert again.returncode == 0, again.stderr
    assert check_records(run) == dict.fromkeys(KERNELS, 1)
    waves = [json.loads(path.read_text()) for path in sorted(run.glob("waves/[0-9].json"))]
    carried = [{kernel for job in wave["jobs"] for kernel, _ in job["work"]} for wave in waves]
    assert carried == [wave for wave in (set(KERNELS), owed) if wave]
    with contextlib.closing(results_db.open_ro(run / "results.db")) as conn:
        commits = {row[0] for row in conn.execute("SELECT commit_sha FROM grades")}
    assert commits <= {wave["commit"] for wave in waves}


# A disk of its own


@contextlib.contextmanager
def own_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """``folder`` as a small file system; skips the test where none can be mounted, which takes root."""
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as handle, contextlib.suppress(OSError):
        while handle.write(b"\0" * 4096):
            pass
