"""What a study still owes: designed work without an answer of its own, with the reason (pure planner)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hpcagent_bench.episodes import Work
from hpcagent_bench.finals import NO_FINAL, FinalRule
from hpcagent_bench.studies import (
    JUDGE_FAULTS,
    EpisodeFacts,
    Submission,
    answering,
    read_episodes,
    standing,
    task_changed,
    waits,
)

__all__ = ["EpisodeFacts", "OwedClass", "OwedItem", "OwedPlan", "Work", "episode_facts", "plan"]

OwedClass = Literal["new", "budget", "infra", "task", "final"]
"""``final`` is owed a final grade (hpcagent-bench grade-under); every other class is owed an episode."""

_BUDGET_RC = {124: "wall clock spent", 125: "token cap spent"}
_INFRA_RC = {
    0: "agent ended cleanly without a graded submission",
    123: "submission marker without a grade",
    126: "context window overflow",
    127: "model API timeout",
}


@dataclass(frozen=True)
class OwedItem:
    """One piece of owed work. Class ``budget`` may deserve a larger budget, ``infra`` the same one again."""

    work: Work
    owed_class: OwedClass
    reason: str


@dataclass(frozen=True)
class OwedPlan:
    """Designed work, split: every designed piece is in exactly one of the four.

    ``owed`` is owed an episode; ``ungraded`` has an answer that is owed a final grade (class ``final``).
    """

    owed: tuple[OwedItem, ...]
    delivered: tuple[Work, ...]
    in_flight: tuple[Work, ...]
    ungraded: tuple[OwedItem, ...] = ()


def episode_facts(results_db: Path, rule: FinalRule | None = None) -> list[EpisodeFacts]:
    """The episodes a results database holds, as ``plan`` wants them; no file yet means none.

    ``rule`` says what a final grade must be; without one, the configuration frozen beside the database does
    (``config.yaml`` of a run root), and without that every final grade counts.
    """
    if not results_db.is_file():
        return []
    from hpcagent_bench.harness import final_rule  # here: the planner itself needs nothing of the judge

    return read_episodes(results_db, rule or final_rule.beside(results_db))


def plan(
    designed: Iterable[Work],
    episodes: Iterable[EpisodeFacts],
    in_flight: Collection[Work] = (),
    attempted: Collection[Work] = (),
) -> OwedPlan:
    """Split ``designed`` into its four parts; a pure function that keeps the design's order.

    The newest judged submission of a piece of work decides (union over all jobs): it is delivered, or it
    waits for a final grade. ``in_flight`` is queued or running and is never owed. ``attempted`` is work that
    a job which has ended was given: without an episode it is class ``infra``, not ``new``.
    """
    held: dict[Work, list[EpisodeFacts]] = defaultdict(list)
    for episode in episodes:
        held[episode.work].append(episode)
    flying, tried = frozenset(in_flight), frozenset(attempted)
    owed: list[OwedItem] = []
    delivered: list[Work] = []
    waiting: list[Work] = []
    ungraded: list[OwedItem] = []
    for work in dict.fromkeys(designed):
        mine = held.get(work, [])
        found = answering(mine)
        if found is not None and found[1].place == "delivered":
            delivered.append(work)
        elif work in flying:
            waiting.append(work)
        elif found is not None:
            ungraded.append(OwedItem(work, "final", found[1].reason))
        else:
            owed.append(OwedItem(work, *_why_owed(mine, work in tried)))
    return OwedPlan(tuple(owed), tuple(delivered), tuple(waiting), tuple(ungraded))


def delivers(episode: EpisodeFacts) -> bool:
    """Whether the episode answers its work: a submission of its final attempt counts, solved or not."""
    return standing(episode).place == "delivered"


def latest(episodes: Iterable[EpisodeFacts]) -> EpisodeFacts:
    """The episode whose final attempt started last."""
    return max(episodes, key=lambda e: (e.started_ms, e.job if e.job is not None else -1, e.rep, e.label))


def _why_owed(episodes: list[EpisodeFacts], attempted: bool) -> tuple[OwedClass, str]:
    if not episodes:
        if attempted:
            return "infra", "a job was given it and left no episode"
        return "new", "never run"
    episode = latest(episodes)
    last = episode.own[-1] if episode.own else None
    reason = _last_reason(last)
    if last is not None and task_changed(last):
        return "task", reason
    if reason.startswith("budget:"):
        return "budget", reason
    if episode.cancelled:
        return "infra", "cancelled: the job ended under the agent"
    if reason.startswith("infra:"):
        return "infra", reason
    code = episode.returncode
    if code in _BUDGET_RC:
        return "budget", f"{_BUDGET_RC[code]} (rc {code})"
    return "infra", _infra_reason(episode, last, reason)


def _last_reason(last: Submission | None) -> str:
    if last is None:
        return ""
    final = last.final.reason if last.final is not None else None
    return final or last.reason or ""


def _infra_reason(episode: EpisodeFacts, last: Submission | None, reason: str) -> str:
    if last is not None and last.disqualified:
        return "its submission was disqualified"
    if last is not None and (last.final or last).status in JUDGE_FAULTS:
        return f"judge fault: {reason or 'no reason recorded'}"
    if last is not None and not last.has_source and (waits(last) or last.status == "ok"):
        return f"{waits(last) or NO_FINAL}, and its library is not kept"
    code = episode.returncode
    if code is None:
        return "the episode left no end record"
    return f"{_INFRA_RC.get(code, 'the agent crashed')} (rc {code})"
