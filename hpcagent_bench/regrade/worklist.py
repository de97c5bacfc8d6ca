"""What is owed a final grade, from results databases (scoring.md 1.1, X4)."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench import config, finals
from hpcagent_bench.corpus import spec
from hpcagent_bench.episodes import Work
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import denominator, final_rule, grading_cuts
from hpcagent_bench.regrade.items import Item
from hpcagent_bench.results_db import ADHOC, SUBMIT_LIKE, SetupConflict, open_ro
from hpcagent_bench.studies import (
    EpisodeFacts,
    Standing,
    Submission,
    answering,
    is_candidate,
    read_episodes,
    waits,
)
from hpcagent_bench.toolchain import languages

SUPERSEDED = "a later submission or episode of its task decides"
NOT_KEPT = "a library is not kept: its episode is owed again"

_OUTSIDE = {
    "adhoc: no episode's": "e.label = :adhoc",
    "cancelled episode (X8)": "e.label <> :adhoc AND coalesce(e.cancelled, 0)",
    "another kernel than its episode's (X6)": (
        "e.label <> :adhoc AND NOT coalesce(e.cancelled, 0) AND g.kernel <> coalesce(e.kernel, '')"
    ),
    "before its episode's final attempt (X7)": (
        "e.label <> :adhoc AND NOT coalesce(e.cancelled, 0) AND g.kernel = e.kernel "
        "AND g.ts_ms < coalesce(e.final_attempt_start_ms, 0)"
    ),
}
"""Submissions that enter no analysis, by reason."""


@dataclass
class Worklist:
    """Items in a fixed order, and how many submissions were left out, by reason."""

    items: list[Item] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def promotions(self) -> int:
        """How many are submitted first."""
        return sum(item.promoted for item in self.items)

    @property
    def setups(self) -> dict[str, int]:
        """Items by setup, sorted by name."""
        return dict(sorted(Counter(item.setup for item in self.items).items()))


@dataclass(frozen=True)
class _Held:
    """An episode, the database it was read from, and the rule it was read by."""

    db: Path
    episode: EpisodeFacts
    judge: config.Judge
    rule: finals.FinalRule


def build(
    dbs: Sequence[Path],
    judge_of: Callable[[Path], config.Judge],
    stamp: str | None = None,
    *,
    every: bool = False,
    cuts_file: Path = grading_cuts.FILE,
) -> Worklist:
    """What the databases owe under the settings ``judge_of`` gives for each.

    ``stamp`` asks for another final protocol than the credited one. Per piece of work the submission that
    decides it (scoring.md R2, R4), with ``every`` all accepted ones that wait. SetupConflict when two
    databases describe one setup differently.
    """
    found = Worklist()
    held: dict[Work, list[_Held]] = defaultdict(list)
    setups: dict[str, tuple[Path, dict[str, Any]]] = {}
    for db in dict.fromkeys(path.resolve() for path in dbs):
        judge = judge_of(db)
        rule = final_rule.of(judge, stamp, cuts_file)
        episodes = read_episodes(db, rule)
        with contextlib.closing(open_ro(db)) as conn:
            _same_setups(conn, db, setups)
            found.left_out.update(_outside(conn))
        for episode in episodes:
            held[episode.work].append(_Held(db, episode, judge, rule))
    for work in sorted(held):
        _add(found, held[work], every)
    found.items.sort(key=_order)
    return found


def _order(item: Item) -> tuple[Any, ...]:
    """Kernels together, since a judge keeps the references of the kernel it grades; then by natural key."""
    job = -1 if item.job is None else item.job
    return (item.kernel, item.setup, job, item.episode_id, item.rep, item.ts_ms, item.kind)


def _same_setups(conn: sqlite3.Connection, db: Path, seen: dict[str, tuple[Path, dict[str, Any]]]) -> None:
    for row in conn.execute("SELECT * FROM setups"):
        told = dict(row)
        first, known = seen.setdefault(told["setup"], (db, told))
        for column, value in told.items():
            if None not in (value, known[column]) and value != known[column]:
                raise SetupConflict(
                    f"setup '{told['setup']}' has {column}={known[column]!r} in {first}, {value!r} in {db}",
                    "one setup name must mean one configuration",
                )


def _outside(conn: sqlite3.Connection) -> Counter[str]:
    """How many submissions no analysis may use, by reason (X6 to X8)."""
    kinds = ", ".join(f"'{kind}'" for kind in SUBMIT_LIKE)
    base = f"SELECT count(*) FROM grades g JOIN episodes e ON e.id = g.episode_id WHERE g.kind IN ({kinds})"
    counted = {
        reason: conn.execute(f"{base} AND {where}", {"adhoc": ADHOC}).fetchone()[0]
        for reason, where in _OUTSIDE.items()
    }
    return +Counter(counted)


def _add(found: Worklist, held: list[_Held], every: bool) -> None:
    """The items of one piece of work."""
    known = {id(one.episode): one for one in held}
    chosen = answering(one.episode for one in held)
    taken: set[tuple[Any, ...]] = set()
    if chosen is not None and chosen[1].place != "delivered":
        _take(found, known[id(chosen[0])], chosen[1], taken)
    for one in held:
        if one.episode.cancelled:
            continue
        for submission in one.episode.own:
            reason = waits(submission)
            if not reason or _row_key(one.episode, submission) in taken:
                continue
            if not submission.has_source:
                found.left_out[NOT_KEPT] += 1
            elif every and is_candidate(submission):
                _take(found, one, Standing("final", submission, reason), taken)
            else:
                taken.add(_row_key(one.episode, submission))
                found.left_out[SUPERSEDED] += 1


def _row_key(episode: EpisodeFacts, submission: Submission) -> tuple[Any, ...]:
    return (episode.job, episode.label, episode.rep, submission.kind, submission.ts_ms)


def _take(found: Worklist, one: _Held, stands: Standing, taken: set[tuple[Any, ...]]) -> None:
    submission = stands.submission
    assert submission is not None
    taken.add(_row_key(one.episode, submission))
    with contextlib.closing(open_ro(one.db)) as conn:
        row = conn.execute(_ROW, (submission.grade_id,)).fetchone()
    obstacle = _obstacle(row, one)
    if obstacle:
        found.left_out[obstacle] += 1
    else:
        found.items.append(_item(row, one, stands, submission))


_ROW = """
SELECT g.*, s.hash, s.language AS written_in, p.device FROM grades g
JOIN episodes e ON e.id = g.episode_id JOIN setups p ON p.setup = e.setup
LEFT JOIN grade_sources s ON s.grade_id = g.id AND s.part = 'host' WHERE g.id = ?
"""


def _obstacle(row: sqlite3.Row, one: _Held) -> str:
    """Why a judge of this kind cannot grade the row, or an empty string."""
    if row["device"] != "cpu":
        return f"setups on {row['device']} are graded on such nodes"
    if row["distribution"] is not None:
        return "distributed submissions are graded on their ranks"
    if row["written_in"] not in languages.REGISTRY:
        return f"language {row['written_in']} cannot be graded here"
    try:
        denominator.for_kernel(spec.load(row["kernel"]), one.judge.measurement)
    except UserError as error:
        return error.message
    return ""


def _item(row: sqlite3.Row, one: _Held, stands: Standing, submission: Submission) -> Item:
    episode, final = one.episode, submission.final
    promoted = stands.place == "promotion"
    return Item(
        db=str(one.db),
        grade_id=row["id"],
        episode_id=episode.label,
        rep=episode.rep,
        job=episode.job,
        slot=episode.work.slot,
        setup=episode.work.setup,
        kernel=row["kernel"],
        ts_ms=row["ts_ms"],
        kind=row["kind"],
        language=row["written_in"],
        source_mode=row["source_mode"],
        source_hash=row["hash"],
        workspace_bytes=row["workspace_bytes"],
        libraries=json.loads(row["requested_libraries"] or "[]"),
        promoted=promoted,
        submissions=len(episode.own),
        reason=stands.reason,
        protocol=one.rule.stamp,
        denominator=one.rule.denominators[row["kernel"]],
        preset=row["preset"],
        final=final.grade_id if final is not None and not promoted else None,
        speedup=final.credited if final is not None and not promoted else None,
        reduction=(final.stamp if final is not None and not promoted else row["timing_reduction"]),
    )


def summary(found: Worklist, out: Path) -> dict[str, Any]:
    """The counts of a worklist, for scripts."""
    return {
        "out": str(out),
        "items": len(found.items),
        "promotions": found.promotions,
        "setups": found.setups,
        "left_out": dict(sorted(found.left_out.items())),
        "reasons": dict(sorted(Counter(item.reason for item in found.items).items())),
    }


def line(found: Worklist, out: Path) -> str:
    """``N submissions (p promotions) -> F; k left out``."""
    number, left = len(found.items), sum(found.left_out.values())
    return (
        f"{number} submission{'' if number == 1 else 's'} "
        f"({found.promotions} promotion{'' if found.promotions == 1 else 's'}) -> {out}; {left} left out"
    )


def told(found: Worklist, out: Path) -> list[str]:
    """One line a setup, then the whole."""
    return [*(f"{setup}  {number}" for setup, number in found.setups.items()), line(found, out)]


def left_out(found: Worklist) -> list[str]:
    """One line a reason for leaving submissions out."""
    return [f"left out  {number}  {reason}" for reason, number in sorted(found.left_out.items())]
