"""Reading recorded episodes for planning and scoring, with the rows that no analysis may use left out.

Left out (scoring.md section 4): adhoc episodes; X6, a grade on another kernel than its episode's; X7, a
grade from before the final attempt. X8 is a property of a whole episode: the caller reads ``cancelled``.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hpcagent_bench.episodes import Work
from hpcagent_bench.finals import JUDGE_FAULTS, NO_FINAL, Final, FinalRule, calibrates, final_of
from hpcagent_bench.results_db import ADHOC, SUBMIT_LIKE, open_ro

__all__ = [
    "JUDGE_FAULTS",
    "EpisodeFacts",
    "Final",
    "Standing",
    "Submission",
    "answering",
    "counts",
    "is_candidate",
    "read_episodes",
    "standing",
    "task_changed",
    "waits",
]

LOST_GRADE = 123
"""Exit code of an agent whose one submission was graded: without a grade on record, the grade is lost."""

_VOIDED = ("infra:", "budget:", "score_error", "task:")


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
    owed: str = ""
    """Why the rule of its study wants another final grade of it; empty when it does not."""
    grade_id: int = 0
    has_source: bool = True
    """Whether its text is on record, so that it can be graded again; a library's is not."""

    @property
    def score(self) -> float | None:
        """S_i of a credited submission: the final row's, else the grade's own; None while one is owed."""
        if self.owed:
            return None
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
    correct_score: Submission | None = None
    """The last correct preview whose source is on record: what an agent that never submitted leaves."""
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
    return submission.final is not None and submission.final.task_changed


def is_candidate(submission: Submission) -> bool:
    """R1: an accepted, timed submission with a plausible timing."""
    fine = submission.status in ("ok", None) and not submission.disqualified and not submission.suspect
    return fine and (submission.speedup is None or submission.speedup > 0)


def waits(submission: Submission) -> str:
    """Why a submission waits for a final grade, or an empty string (scoring.md X4)."""
    if submission.disqualified or task_changed(submission):
        return ""
    if submission.owed or submission.status != "ok" or submission.suspect:
        return submission.owed
    final = submission.final
    if final is None:
        return "" if submission.credited is not None else NO_FINAL
    return f"judge fault: {final.reason or 'no reason recorded'}" if final.fault else ""


def counts(submission: Submission) -> bool:
    """Whether the submission is credited, or refused for a reason of its own, and not disqualified."""
    if submission.disqualified or waits(submission):
        return False
    if submission.score is not None:
        return True
    judged = submission.final or submission
    if judged.status in JUDGE_FAULTS or judged.status is None:
        return False
    return not ((submission.reason or "").startswith(_VOIDED) or (judged.reason or "").startswith(_VOIDED))


Place = Literal["delivered", "final", "promotion", "none"]


@dataclass(frozen=True)
class Standing:
    """Where an episode stands, and the submission (or the preview to promote) that decides it.

    ``final``: the submission waits for a final grade. ``promotion``: a source is to be submitted again before
    it is graded. ``none``: nothing of it answers.
    """

    place: Place
    submission: Submission | None = None
    reason: str = ""


def standing(episode: EpisodeFacts) -> Standing:
    """Which one place an episode is in; the planner and the worklist both ask here.

    R2: the last accepted submission decides; a refusal answers where none was accepted. A cancelled episode
    answers nothing (X8). A final grade that says the task changed takes back what was submitted up to then.
    """
    if episode.cancelled:
        return Standing("none")
    taken_back = max((n for n, s in enumerate(episode.own, 1) if task_changed(s)), default=0)
    own = episode.own[taken_back:]
    if own and own[-1].owed and not is_candidate(own[-1]) and own[-1].has_source:
        return Standing("promotion", own[-1], own[-1].owed)
    candidates = [s for s in own if is_candidate(s) and (counts(s) or (waits(s) and s.has_source))]
    decisive = candidates[-1] if candidates else next((s for s in reversed(own) if counts(s)), None)
    if decisive is not None:
        reason = waits(decisive)
        return Standing("final" if reason else "delivered", decisive, reason)
    return Standing("none") if taken_back else _promotion(episode)


def _promotion(episode: EpisodeFacts) -> Standing:
    """What an ended episode leaves to submit, of which no submission was judged (scoring.md 1.1)."""
    ended = episode.returncode not in (None, LOST_GRADE)
    faulted = [s for s in episode.own if s.status in JUDGE_FAULTS and not s.disqualified]
    left = [s for s in (*faulted, episode.correct_score) if s is not None and s.has_source]
    if not ended or not left or len(faulted) < len(episode.own):
        return Standing("none")
    newest = max(left, key=lambda s: (s.ts_ms, s.grade_id))
    if newest.kind == "score":
        return Standing("promotion", newest, "it never submitted its last correct source")
    return Standing("promotion", newest, f"judge fault: {newest.reason or 'no reason recorded'}")


def answering(episodes: Iterable[EpisodeFacts]) -> tuple[EpisodeFacts, Standing] | None:
    """The episode of one piece of work that decides where the work stands; None when nothing answers.

    The newest submission that was judged, also one that waits for a final grade; a promotion of what never
    was judged only where no episode holds one.
    """
    found = [(episode, standing(episode)) for episode in episodes]
    found = [pair for pair in found if pair[1].place != "none"]
    return max(found, key=_answer_rank, default=None)


def _answer_rank(pair: tuple[EpisodeFacts, Standing]) -> tuple[bool, int, bool, int, int, str]:
    episode, stands = pair
    at = stands.submission.ts_ms if stands.submission is not None else 0
    job = -1 if episode.job is None else episode.job
    judged = stands.place != "promotion" or (stands.submission is not None and bool(stands.submission.owed))
    return (judged, at, stands.place == "delivered", episode.started_ms, job, episode.label)


_GRADES = f"""
SELECT g.id, g.episode_id, g.kernel, g.kind, g.ts_ms, g.call_index, g.status, g.reason, g.speedup, g.correct,
       g.credited_speedup, g.suspect, g.baseline_ns, g.native_ns, g.baseline, g.preset, g.timing_reduction,
       EXISTS (SELECT 1 FROM disqualifications d WHERE d.grade_id = g.id) AS disqualified,
       EXISTS (SELECT 1 FROM grade_sources s WHERE s.grade_id = g.id AND s.part = 'host') AS has_source
FROM grades g JOIN episodes e ON e.id = g.episode_id
WHERE g.kind IN ({", ".join(f"'{kind}'" for kind in ("score", *SUBMIT_LIKE))})
  AND e.label <> '{ADHOC}' AND g.kernel = e.kernel
  AND g.ts_ms >= coalesce(e.final_attempt_start_ms, 0)
ORDER BY g.ts_ms, g.call_index, g.id
"""

_FINALS = """
SELECT id, of_grade_id, status, reason, credited_speedup, suspect, ts_ms, correct, timing_reduction,
       denominator, grading_protocol
FROM grades WHERE kind = 'final'
"""


def read_episodes(db: Path, rule: FinalRule | None = None) -> list[EpisodeFacts]:
    """Every non-adhoc episode of ``db``, in (job, label) order.

    With ``rule``, only a final grade that it has nothing against counts (scoring.md X4); a submission without
    one is ``owed``. Without, any protocol's does. Calibration rows never do.
    """
    conn = open_ro(db)
    try:
        conn.execute("BEGIN")
        finals = standing_finals(conn, rule.stamp if rule else None)
        grades: dict[int, list[sqlite3.Row]] = defaultdict(list)
        for row in conn.execute(_GRADES):
            grades[row["episode_id"]].append(row)
        episodes = conn.execute(
            "SELECT * FROM episodes WHERE label <> ? AND kernel IS NOT NULL ORDER BY job, label, rep",
            (ADHOC,),
        ).fetchall()
    finally:
        conn.close()
    return [_episode(row, grades[row["id"]], finals, rule) for row in episodes]


def standing_finals(conn: sqlite3.Connection, stamp: str | None) -> dict[int, Final]:
    """The one final row of each submission that stands, by the submission's grade id."""
    found: dict[int, Final] = {}
    for row in conn.execute(_FINALS):
        final = final_of(row)
        held = found.get(row["of_grade_id"])
        if calibrates(final.stamp) or (held and held.precedence(stamp) > final.precedence(stamp)):
            continue
        found[row["of_grade_id"]] = final
    return found


def _episode(
    row: sqlite3.Row, grades: list[sqlite3.Row], finals: dict[int, Final], rule: FinalRule | None
) -> EpisodeFacts:
    submissions = tuple(_submission(g, finals, rule) for g in grades if g["kind"] in SUBMIT_LIKE)
    previews = [g for g in grades if g["kind"] == "score"]
    correct = [g for g in previews if g["correct"] and g["has_source"]]
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
        correct_score=_submission(correct[-1], finals, None) if correct else None,
        scores=len(previews),
        relaunches=row["relaunches"],
        fresh_input_tokens=row["fresh_input_tokens"],
        cached_input_tokens=row["cached_input_tokens"],
        output_tokens=row["output_tokens"],
        effective_tokens=row["effective_tokens"],
        output_source=row["output_source"],
    )


def _submission(row: sqlite3.Row, finals: dict[int, Final], rule: FinalRule | None) -> Submission:
    final = finals.get(row["id"])
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
        final=final,
        baseline_ns=row["baseline_ns"],
        native_ns=row["native_ns"],
        baseline=row["baseline"],
        preset=row["preset"],
        owed=_objection(row, final, rule),
        grade_id=row["id"],
        has_source=bool(row["has_source"]),
    )


def _objection(row: sqlite3.Row, final: Final | None, rule: FinalRule | None) -> str:
    """Why the rule wants another final grade of a submission; "" without a rule."""
    if rule is None or row["status"] in JUDGE_FAULTS:
        return ""
    if final is not None:
        return "" if final.task_changed or final.fault else rule.objection(row["kernel"], final)
    if row["status"] in ("ok", None):
        return NO_FINAL
    cut = rule.cut(row["kernel"], row["ts_ms"])
    return f"it was refused by grading older than {cut}" if cut is not None else ""
