"""What the desk writes into the judge's shard, and what it looks up there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcagent_bench import config, results_db
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.requests import Request
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import recording
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.results_rows import Kind

PROMOTED = "promoted-unsubmitted"
HARVESTED = "harvested-workspace"
_KINDS: dict[str | None, Kind] = {PROMOTED: "promoted", HARVESTED: "harvested"}


@dataclass(frozen=True)
class Ledger:
    """The judge's shard; without one nothing is recorded and nothing found."""

    shard: Path | None
    settings: config.Judge

    def record(self, route: str, verdict: Verdict, request: Request, caller: Caller, request_id: str) -> None:
        """One transaction: the grade, its cells and sources, and for an accepted submit its final row."""
        if self.shard is None:
            return
        kind: Kind = "score" if route == "score" else _KINDS.get(request.optimizer, "submit")
        grade = recording.grade_of(
            verdict,
            kind,
            self.settings,
            request_id=request_id,
            optimizer=request.optimizer,
            tokens=request.tokens,
        )
        final = recording.final_of(verdict, grade) if kind != "score" else None
        with contextlib.closing(results_db.open_rw(self.shard)) as conn:
            results_db.record(conn, caller.setup, caller.episode, grade, final)

    def submitted(self, caller: Caller, kernel: Kernel, request_id: str | None = None) -> str | None:
        """Status of a graded submit of the episode (with this key, when one is given), or None.

        A judge fault is none: it spends no submission.
        """
        if self.shard is None:
            return None
        marks = ",".join("?" * len(results_db.SUBMIT_LIKE))
        values: list[Any] = [*caller.episode.key, kernel.name, *results_db.SUBMIT_LIKE]
        keyed = ""
        if request_id is not None:
            keyed = "AND g.request_id = ?"
            values.append(request_id)
        with contextlib.closing(results_db.open_ro(self.shard)) as conn:
            row = conn.execute(
                "SELECT g.status FROM grades g JOIN episodes e ON e.id = g.episode_id "
                "WHERE coalesce(e.job, -1) = ? AND e.label = ? AND e.rep = ? AND g.kernel = ? "
                f"AND g.kind IN ({marks}) AND g.status <> 'score_error' {keyed} LIMIT 1",
                values,
            ).fetchone()
        return None if row is None else str(row[0])
