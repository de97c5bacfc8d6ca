"""Rows and job folders the record tests build on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from hpcagent_bench.results_db import Cell, Episode, Grade, Setup, Source, create, record

SETUP = Setup("quick-c-auto", study="quick", language="c", harness="autotune", temperature=None)
TABLES = ("setups", "episodes", "sources", "grades", "grade_sources", "grade_cells")


def episode(problem: int = 0, job: int | None = 100001, setup: str = SETUP.setup, **more: Any) -> Episode:
    return Episode(setup, job, f"{setup}.n0.p{problem}.w{problem}", kernel=f"k{problem}", **more)


def grade(kernel: str = "k0", kind: str = "submit", ts_ms: int = 1000, **more: Any) -> Grade:
    cells = tuple(Cell(i, label=f"in{i}", shape={"N": 8 + i}, ratio=2.0, status="graded") for i in range(4))
    base: dict[str, Any] = {"build_ok": True, "correct": True, "status": "ok", "speedup": 2.0, "cells": cells}
    base["sources"] = (Source("host", "c", f"/* {kernel} */"),)
    return Grade(kernel, kind, ts_ms=ts_ms, **{**base, **more})  # type: ignore[arg-type]


def submit(
    conn: sqlite3.Connection, who: Episode, ts_ms: int = 1000, score: float = 2.0, **more: Any
) -> None:
    """An accepted submission with its final row."""
    kernel = str(who.kernel)
    final = grade(kernel, "final", ts_ms, status="graded", credited_speedup=score, timing_reduction="mw4x5")
    record(conn, SETUP, who, grade(kernel, ts_ms=ts_ms, credited_speedup=score, **more), final)


def dump(path: Path) -> dict[str, list[Any]]:
    """The content of every table but for surrogate ids, sorted."""
    conn = create(path)
    joined = {
        "grades": "SELECT e.label, e.job, g.kernel, g.ts_ms, g.kind, g.request_id, g.credited_speedup, "
        "p.ts_ms FROM grades g JOIN episodes e ON e.id = g.episode_id "
        "LEFT JOIN grades p ON p.id = g.of_grade_id",
        "cells": "SELECT e.label, g.kind, g.ts_ms, c.cell, c.shape FROM grade_cells c "
        "JOIN grades g ON g.id = c.grade_id JOIN episodes e ON e.id = g.episode_id",
        "setups": "SELECT * FROM setups",
        "sources": "SELECT * FROM sources",
        "links": "SELECT count(*) FROM grade_sources",
        "episodes": "SELECT setup, job, label, rep, slot, kernel, returncode, cancelled FROM episodes",
    }
    found = {name: sorted(map(repr, map(tuple, conn.execute(sql)))) for name, sql in joined.items()}
    conn.close()
    return found


def token_record(who: Episode, **more: Any) -> dict[str, Any]:
    return {"episode_id": who.label, "kernel": f"loop_level_reasoning/{who.kernel}", "attempts": 1, **more}


def make_job(run: Path, job: int, problems: tuple[int, ...] = (0, 1), tokens: bool = True) -> Path:
    """A job folder as a finished job leaves it: one shard, one worker folder a problem."""
    folder = run / str(job)
    conn = create(folder / "judge" / "rank-0" / "hpcagent_bench0.db")
    for problem in problems:
        who = episode(problem, job)
        submit(conn, who)
        filed = {"setup": vars(SETUP), "episode": vars(who), "language": "c", "submission_mode": "single"}
        (folder / "fused-tokens").mkdir(exist_ok=True)
        (folder / "fused-tokens" / f"{problem:064x}").write_text(json.dumps(filed))
        worker = folder / "agents" / "node-0" / f"problem-{problem}-worker-{problem}"
        worker.mkdir(parents=True)
        if tokens:
            (worker / "tokens.json").write_text(
                json.dumps(token_record(who, returncode=123, cancelled=False))
            )
    conn.close()
    return folder
