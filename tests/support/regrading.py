"""Recorded submissions that are owed a final grade, and the verbs that see to it."""

from __future__ import annotations

import dataclasses
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from hpcagent_bench import config, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.finals import FinalRule
from hpcagent_bench.harness import final_rule
from hpcagent_bench.regrade import worklist
from hpcagent_bench.regrade.worklist import Worklist
from hpcagent_bench.results_db import Cell, Episode, Grade, Setup, Source, open_ro, record
from hpcagent_bench.results_rows import Kind

KERNELS = ("polygon_area_terms", "tsvc_2_s311", "ext_war_unit", "tsvc_2_vpvts")
SETUP = Setup("t-c-auto", study="t", language="c", harness="autotune", temperature=None)
STAMP = "mw4x5"
SEALED = "sealed-nonce-v1+host-monotonic"
FINAL: dict[str, Any] = {"timing_reduction": STAMP, "denominator": "c", "grading_protocol": SEALED}


def judge() -> config.Judge:
    """A judge that divides by the sequential C reference alone and does not wait for a quiet node."""
    made = config.Judge()
    made.measurement.node_check = "off"
    made.measurement.denominator.loop_level_reasoning = "c"
    made.measurement.denominator.scientific_computing = "c"
    return made


RULE: FinalRule = final_rule.of(judge())


def honest(kernel: str) -> str:
    """The emitted C reference."""
    return translators.emit(spec.load(kernel), "c")


def episode(problem: int = 0, job: int | None = 7, kernel: str = "", **more: Any) -> Episode:
    label = f"{SETUP.setup}.n0.p{problem}.w0"
    return Episode(SETUP.setup, job, label, kernel=kernel or KERNELS[problem % len(KERNELS)], **more)


def grade(who: Episode, kind: Kind = "submit", ts_ms: int = 1000, **more: Any) -> Grade:
    """An accepted grade of the episode as this judge records it; ``text`` is its source, None for none."""
    kernel = str(who.kernel)
    text = more.pop("text", f"/* {kernel} {who.label} {ts_ms} */")
    base: dict[str, Any] = {
        **FINAL,
        "build_ok": True,
        "correct": True,
        "status": "ok",
        "speedup": 2.0,
        "preset": "tiny",
        "suspect": False,
        "workspace_bytes": 0,
        "source_mode": "source",
        "requested_build": [],
        "build_commands": ["gcc -O3 k.c"],
        "task_hash": spec.task_fingerprint(spec.load(kernel)) if kernel in spec.discover() else None,
        "sources": () if text is None else (Source("host", "c", text),),
        "cells": tuple(Cell(i, f"in{i}", ratio=2.0, status="graded") for i in range(4)),
    }
    return Grade(kernel, kind, ts_ms=ts_ms, **{**base, **more})


def final(who: Episode, ts_ms: int = 1000, credited: float | None = 2.0, **more: Any) -> Grade:
    """The final row of an accepted submission."""
    named = {"status": "graded", "correct": True, "text": None, "credited_speedup": credited, **more}
    return grade(who, "final", ts_ms, **named)


def put(conn: sqlite3.Connection, who: Episode, one: Grade, its_final: Grade | None = None) -> int:
    """Record a grade; the episode has ended (return code 0) unless somebody says otherwise."""
    made = record(conn, SETUP, who, one, its_final)[0]
    conn.execute("UPDATE episodes SET returncode = 0 WHERE label = ? AND returncode IS NULL", (who.label,))
    return made


def ended(conn: sqlite3.Connection, who: Episode, **columns: Any) -> None:
    """What the driver said about the episode's end."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    conn.execute(f"UPDATE episodes SET {changes} WHERE label = ?", [*columns.values(), who.label])


def listed(*dbs: Path, **more: Any) -> Worklist:
    """The worklist of databases under ``judge()``."""
    return worklist.build(dbs, lambda path: judge(), **more)


def rows(db: Path, where: str = "kind = 'final'") -> list[dict[str, Any]]:
    """Grade rows with their episode's job and label, in an order that ids do not decide."""
    order = "job, label, kernel, kind, timing_reduction, ts_ms"
    with closing(open_ro(db)) as conn:
        found = conn.execute(f"SELECT * FROM grades_flat WHERE {where} ORDER BY {order}")
        return [dict(row) for row in found]


def content(db: Path) -> str:
    """Everything a results database holds, ids included: for showing that nothing changed."""
    with closing(open_ro(db)) as conn:
        return "\n".join(conn.iterdump())


def freeze(folder: Path, sizes: str = "tiny") -> Path:
    """Freeze a run's configuration beside its results.db, as a launch does."""
    from experiments import compose

    words = ["+study=quickstart", f"sizes={sizes}", 'judge.measurement.node_check="off"']
    tracks = ("loop_level_reasoning", "scientific_computing")
    words += [f"judge.measurement.denominator.{track}=c" for track in tracks]
    path = folder / final_rule.CONFIG
    path.write_text(compose.compose(words).text)
    return path


def seeds(folder: Path) -> Path:
    """A secret seeds file."""
    path = folder / "seeds.json"
    path.write_text(json.dumps({"first": 11, "second": 12, "third": 13}))
    return path


def command(*words: object) -> list[str]:
    """The command line of ``hpcagent-bench grade-under``."""
    return [sys.executable, "-m", "hpcagent_bench.cli", "grade-under", *map(str, words)]


def grade_under(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end as the command line does, in this process: starting another one takes longer."""
    from hpcagent_bench import cli

    argv = command(*words)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", argv[2:]):
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())


def told(finished: subprocess.CompletedProcess[str], code: int = 0) -> dict[str, Any]:
    """What a verb printed with --json."""
    assert finished.returncode == code, finished.stderr
    found = json.loads(finished.stdout)
    assert isinstance(found, dict)
    return found


def but(one: Grade, **changes: Any) -> Grade:
    """A grade with other columns."""
    return dataclasses.replace(one, **changes)
