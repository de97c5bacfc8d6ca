"""Reading recorded episodes for planning and scoring, with the rows that no analysis may use left out.

Left out (scoring.md section 4): adhoc episodes; X6, a grade on another kernel than its episode's; X7, a
grade from before the final attempt. X8 is a property of a whole episode: the caller reads ``cancelled``.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.episodes import Work
from hpcagent_bench.results_db import ADHOC, SUBMIT_LIKE, open_ro

JUDGE_FAULTS = frozenset({"score_error", "error"})
"""Statuses of a grade that says nothing about the submission."""

_VOIDED = ("infra:", "budget:", "score_error", "task:")


@dataclass(frozen=True)
class Final:
    """The final grade of a submission. ``credited`` is S_i, None when the task is not solved."""

    status: str | None = None
    reason: str | None = None
    credited: float | None = None
    suspect: bool = False
    ts_ms: int = 0


@dataclass(frozen=True)
class Submission:
    """One submit-like grade with its final row, if it has one. Times in ns, ``ts_ms`` UTC epoch ms."""

    ts_ms: int
    kind: str = "submit"
    status: str | None = "ok"
    reason: str | None = None
    speedup: float | None = None
    credited: float | None = None
    suspect: bool = False
    disqualified: bool = False
    call_index: int = 1
    final: Final | None = None
    baseline_ns: float | None = None
    native_ns: float | None = None
    baseline: str | None = None
    preset: str | None = None

    @property
    def score(self) -> float | None:
        """S_i of a credited submission: the final row's, else the grade's own."""
        return self.final.credited if self.final is not None else self.credited


@dataclass(frozen=True)
class EpisodeFacts:
    """One episode as planning and scoring see it. Tokens are of the final attempt; None is not measured."""

    work: Work
    job: int | None = None
    label: str = ""
    rep: int = 1
    returncode: int | None = None
    cancelled: bool = False
    final_attempt_start_ms: int | None = None
    last_ms: int = 0
    result: str | None = None
    submissions: tuple[Submission, ...] = ()
    scores: int = 0
    relaunches: int = 0
    fresh_input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    effective_tokens: int | None = None
    output_source: str | None = None

    @property
    def started_ms(self) -> int:
        """When the final attempt started, else the last sign of the episode; 0 when undated."""
        return self.final_attempt_start_ms or self.last_ms

    @property
    def own(self) -> tuple[Submission, ...]:
        """The submissions of the final attempt, oldest first (X7)."""
        start = self.final_attempt_start_ms or 0
        kept = (s for s in self.submissions if s.ts_ms >= start)
        return tuple(sorted(kept, key=lambda s: (s.ts_ms, s.call_index)))


def task_changed(submission: Submission) -> bool:
    """Whether its final grade says that the kernel is no longer the one it was written for."""
    return submission.final is not None and (submission.final.reason or "").startswith("task:")


def counts(submission: Submission) -> bool:
    """Whether the submission is credited, or refused for a reason of its own, and not disqualified."""
    if submission.disqualified:
        return False
    if submission.score is not None:
        return True
    judged = submission.final or submission
    if judged.status in JUDGE_FAULTS or judged.status is None:
        return False
    if (submission.reason or "").startswith(_VOIDED) or (judged.reason or "").startswith(_VOIDED):
        return False
    # A correct submission nobody credited and nobody refused still waits for its final grade.
    return submission.final is not None or submission.suspect or submission.status != "ok"


_GRADES = f"""
SELECT g.id, g.episode_id, g.kind, g.ts_ms, g.call_index, g.status, g.reason, g.speedup, g.credited_speedup,
       g.suspect, g.baseline_ns, g.native_ns, g.baseline, g.preset, g.timing_reduction,
       d.grade_id IS NOT NULL AS disqualified
FROM grades g JOIN episodes e ON e.id = g.episode_id LEFT JOIN disqualifications d ON d.grade_id = g.id
WHERE g.kind IN ({", ".join(f"'{kind}'" for kind in ("score", *SUBMIT_LIKE))})
  AND e.label <> '{ADHOC}' AND g.kernel = e.kernel
  AND g.ts_ms >= coalesce(e.final_attempt_start_ms, 0)
ORDER BY g.ts_ms, g.call_index, g.id
"""

_FINALS = """
SELECT of_grade_id, status, reason, credited_speedup, suspect, ts_ms, timing_reduction
FROM grades WHERE kind = 'final' ORDER BY ts_ms, id
"""


def read_episodes(db: Path, stamp: str | None = None) -> list[EpisodeFacts]:
    """Every non-adhoc episode of ``db``, in (job, label) order.

    With ``stamp``, final rows of another measurement protocol do not count (scoring.md X4).
    """
    conn = open_ro(db)
    try:
        conn.execute("BEGIN")
        finals = _finals(conn, stamp)
        grades: dict[int, list[sqlite3.Row]] = defaultdict(list)
        for row in conn.execute(_GRADES):
            grades[row["episode_id"]].append(row)
        episodes = conn.execute(
            "SELECT * FROM episodes WHERE label <> ? AND kernel IS NOT NULL ORDER BY job, label, rep",
            (ADHOC,),
        ).fetchall()
    finally:
        conn.close()
    return [_episode(row, grades[row["id"]], finals) for row in episodes]


def _finals(conn: sqlite3.Connection, stamp: str | None) -> dict[int, Final]:
    """One final per submission: a credited one before an uncredited one, then the newest."""
    found: dict[int, Final] = {}
    for row in conn.execute(_FINALS):
        if stamp is not None and row["timing_reduction"] not in (stamp, None):
            continue
        held = found.get(row["of_grade_id"])
        if held is not None and held.credited is not None and row["credited_speedup"] is None:
            continue
        found[row["of_grade_id"]] = Final(
            row["status"], row["reason"], row["credited_speedup"], bool(row["suspect"]), row["ts_ms"]
        )
    return found


def _episode(row: sqlite3.Row, grades: list[sqlite3.Row], finals: dict[int, Final]) -> EpisodeFacts:
    submissions = tuple(_submission(g, finals) for g in grades if g["kind"] in SUBMIT_LIKE)
    stamps = [g["ts_ms"] for g in grades]
    return EpisodeFacts(
        work=Work(row["setup"], row["kernel"], row["slot"]),
        job=row["job"],
        label=row["label"],
        rep=row["rep"],
        returncode=row["returncode"],
        cancelled=bool(row["cancelled"]),
        final_attempt_start_ms=row["final_attempt_start_ms"],
        last_ms=max(stamps, default=0),
        result=row["result"],
        submissions=submissions,
        scores=len(grades) - len(submissions),
        relaunches=row["relaunches"],
        fresh_input_tokens=row["fresh_input_tokens"],
        cached_input_tokens=row["cached_input_tokens"],
        output_tokens=row["output_tokens"],
        effective_tokens=row["effective_tokens"],
        output_source=row["output_source"],
    )


def _submission(row: sqlite3.Row, finals: dict[int, Final]) -> Submission:
    return Submission(
        ts_ms=row["ts_ms"],
        kind=row["kind"],
        status=row["status"],
        reason=row["reason"],
        speedup=row["speedup"],
        credited=row["credited_speedup"],
        suspect=bool(row["suspect"]),
        disqualified=bool(row["disqualified"]),
        call_index=row["call_index"] or 1,
        final=finals.get(row["id"]),
        baseline_ns=row["baseline_ns"],
        native_ns=row["native_ns"],
        baseline=row["baseline"],
        preset=row["preset"],
    )
