"""An A/A study on disk: what it measures, every grade in a results database, looks at the node beside it.

A grade is one transaction, its runs included, so a study killed at any moment goes on after its last grade.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench import config, paths, results_db
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import recording
from hpcagent_bench.harness.machine.node import LookFile
from hpcagent_bench.harness.scoring import ScoredInput, Verdict

SETUP = results_db.Setup("calibrate", study="calibrate", language="c", harness="calibrate")
EPISODE = results_db.Episode(SETUP.setup, None, results_db.ADHOC)
"""Adhoc: kept on record, answers nothing, whatever database it is merged into."""


@dataclass(frozen=True)
class Step:
    """One A/A grade of a study: which kernel under which calibration protocol in which condition."""

    turn: int
    kernel: str
    condition: str
    stamp: str

    @property
    def key(self) -> str:
        """Names the step in the database."""
        return f"{self.stamp}/{self.condition}/{self.turn}/{self.kernel}"


@dataclass(frozen=True)
class Pair:
    """One input of an A/A grade: the timed runs of both sides in ns and what was credited.

    ``ratio`` is the plain ratio of medians, ``credited`` whether it was taken for real, ``suspect`` and
    ``failed`` why it was not believed or not measured.
    """

    candidate: tuple[int, ...] = ()
    baseline: tuple[int, ...] = ()
    ratio: float = 1.0
    credited: bool = False
    suspect: str = ""
    failed: str = ""

    @property
    def measured(self) -> bool:
        """Whether both sides have all their runs."""
        return not self.failed and bool(self.candidate) and len(self.candidate) == len(self.baseline)


@dataclass(frozen=True)
class Done:
    """A recorded step: its pairs, how long it took, and why it failed, if it did."""

    step: Step
    pairs: tuple[Pair, ...]
    seconds: float
    fault: str = ""


def pair_of(scored: ScoredInput) -> Pair:
    """What a study keeps of one input of a verdict."""
    result = scored.result
    if result.reduction is None or result.race is None:
        return Pair(failed=result.runs.failed or "not measured")
    if result.runs.stopped_at_ns is not None:
        return Pair(failed=f"stopped at {result.runs.stopped_at_ns / 1e9:.3g} s")
    return Pair(
        tuple(result.runs.inside),
        tuple(int(ns) for ns in result.race.baseline),
        result.reduction.ratio,
        result.reduction.significant,
        scored.suspect,
    )


@dataclass
class Store:
    """The folder of a study. ``open`` makes or continues one."""

    folder: Path
    done: dict[str, Done] = field(default_factory=dict)
    looks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def database(self) -> Path:
        """The results database: a row a grade, cells and raw runs with it."""
        return self.folder / "results.db"

    @property
    def node_file(self) -> LookFile:
        """Every look at the node."""
        return LookFile(self.folder / "node.jsonl")

    @classmethod
    def open(cls, folder: Path, facts: Mapping[str, Any]) -> Store:
        """The study in ``folder``, begun with ``facts`` or continued under the same ones (UserError else)."""
        store = cls(folder)
        about = folder / "study.json"
        if about.exists():
            _same_facts(about, facts)
        else:
            if folder.is_dir() and any(folder.iterdir()):
                raise UserError(f"--out {folder}: holds other things", "name a new or empty folder")
            paths.write_atomic(about, json.dumps(facts, indent=1, sort_keys=True))
        if not store.database.exists():
            results_db.create(store.database)
        store._read()
        return store

    def record(self, step: Step, verdict: Verdict, settings: config.Judge, seconds: float) -> Done:
        """Write one grade, on disk when this returns."""
        pairs = tuple(pair_of(scored) for scored in verdict.inputs)
        fault = "" if verdict.correct else f"{verdict.status}: {verdict.reason}"
        detail = {
            "step": dataclasses.asdict(step),
            "pairs": [dataclasses.asdict(pair) for pair in pairs],
            "seconds": seconds,
            "fault": fault,
        }
        row = recording.grade_of(verdict, "score", settings, request_id=step.key)
        row = dataclasses.replace(row, detail=json.dumps(detail))
        conn = results_db.open_rw(self.database)
        try:
            results_db.record(conn, SETUP, EPISODE, row)
        finally:
            conn.close()
        done = Done(step, pairs, seconds, fault)
        self.done[step.key] = done
        return done

    def look(self, readings: Mapping[str, Any]) -> None:
        """Keep one look at the node."""
        self.looks.append(dict(readings))
        self.node_file(readings)

    def _read(self) -> None:
        conn = results_db.open_ro(self.database)
        try:
            rows: Iterable[sqlite3.Row] = conn.execute("SELECT detail FROM grades ORDER BY id")
            for row in rows:
                done = _done(json.loads(row["detail"]))
                self.done[done.step.key] = done
        finally:
            conn.close()
        self.looks = self.node_file.read()


def _done(detail: dict[str, Any]) -> Done:
    pairs = tuple(
        Pair(**{**raw, "candidate": tuple(raw["candidate"]), "baseline": tuple(raw["baseline"])})
        for raw in detail["pairs"]
    )
    return Done(Step(**detail["step"]), pairs, detail["seconds"], detail["fault"])


def _same_facts(about: Path, facts: Mapping[str, Any]) -> None:
    try:
        known = json.loads(about.read_text())
    except (OSError, ValueError):
        raise UserError(f"{about}: cannot be read", "name another folder with --out") from None
    for name, value in facts.items():
        if known.get(name) != value:
            raise UserError(
                f"{about.parent} holds a study with {name} {known.get(name)}, this one has {value}",
                "name another folder with --out, or repeat the options of the first run",
            )


def machine_facts(settings: config.Judge, sizes: config.Sizes, cores: tuple[int, ...]) -> dict[str, Any]:
    """What must not change within a study: one machine, one rung, one way of measuring."""
    return {
        "node": platform.node(),
        "cpu": recording.cpu_model(),
        "cores": list(cores),
        "sizes": sizes.name,
        "bytes": sizes.bytes,
        "datatype": settings.service.datatype,
        "sealed": settings.grading.seal,
    }
