"""Which recorded submission answers a task, and with what score (scoring.md sections 5 and 6)."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from hpcagent_bench.episodes import Work
from hpcagent_bench.studies import (
    EpisodeFacts,
    Submission,
    counts,
    is_candidate,
    task_changed,
    waits,
)

State = Literal["solved", "unsolved", "ungraded", "unanswered"]

NOT_DELIVERED = 1.0
"""What a task without a solved answer is worth."""


@dataclass(frozen=True)
class Answer:
    """The answer of one (setup, kernel, slot). ``score`` is S_i: 1 unless solved.

    ``ungraded``: a submission still waits for its final grade; ``unanswered``: nothing was graded.
    """

    work: Work
    state: State
    score: float
    status: str
    reason: str
    episode: EpisodeFacts
    submission: Submission | None = None

    @property
    def solved(self) -> bool:
        """Whether the task is solved and its score credited."""
        return self.state == "solved"


def answers(episodes: Iterable[EpisodeFacts]) -> dict[Work, Answer]:
    """The answer of every piece of work some episode served (R1, R2, R4, X8)."""
    return {work: answer(episode) for work, episode in latest_episodes(episodes).items()}


def latest_episodes(episodes: Iterable[EpisodeFacts]) -> dict[Work, EpisodeFacts]:
    """R4: per (setup, kernel, slot) the episode that holds the newest valid submission.

    Where none does: the newest episode whose submission was at least judged, else the newest of all.
    Cancelled episodes are left out (X8).
    """
    held: dict[Work, list[EpisodeFacts]] = defaultdict(list)
    for episode in episodes:
        if not episode.cancelled:
            held[episode.work].append(episode)
    return {work: max(mine, key=_rank) for work, mine in held.items()}


def _rank(episode: EpisodeFacts) -> tuple[int, int, int, int, str]:
    job = -1 if episode.job is None else episode.job
    valid = [s.ts_ms for s in episode.own if is_valid(s)]
    if valid:
        return (2, max(valid), episode.started_ms, job, episode.label)
    judged = any(counts(s) for s in episode.own)
    return (int(judged), 0, episode.started_ms, job, episode.label)


def is_valid(submission: Submission) -> bool:
    """A submission the final grade credited or marked unsolved (R4)."""
    final = submission.final
    if submission.disqualified or final is None or task_changed(submission) or waits(submission):
        return False
    return final.credited is not None or not final.fault


def answer(episode: EpisodeFacts) -> Answer:
    """R2: the last candidate of the episode, in (ts_ms, call_index) order, decides."""
    candidates = [s for s in episode.own if is_candidate(s)]
    if candidates:
        return _decided(episode, candidates[-1])
    judged = [s for s in episode.own if counts(s)]
    if judged:
        last = judged[-1]
        status = "suspect" if last.suspect else last.status or "unsolved"
        return Answer(episode.work, "unsolved", NOT_DELIVERED, status, last.reason or "", episode, last)
    last_reason = next((s.reason or s.status or "" for s in reversed(episode.own)), "")
    return Answer(episode.work, "unanswered", NOT_DELIVERED, "unanswered", last_reason, episode)


def _decided(episode: EpisodeFacts, chosen: Submission) -> Answer:
    final = chosen.final
    score = chosen.score
    if score is not None:
        return Answer(episode.work, "solved", score, "solved", "", episode, chosen)
    reason = (final.reason if final is not None else chosen.reason) or ""
    if waits(chosen) or final is None:
        told = waits(chosen) or reason
        return Answer(episode.work, "ungraded", NOT_DELIVERED, "ungraded", told, episode, chosen)
    if task_changed(chosen):
        return Answer(episode.work, "unanswered", NOT_DELIVERED, "task changed", reason, episode, chosen)
    status = "suspect" if final.suspect else "unsolved"
    return Answer(episode.work, "unsolved", NOT_DELIVERED, status, reason, episode, chosen)


@dataclass(frozen=True)
class KernelAnswer:
    """The answer of a (setup, kernel) over its slots (R5)."""

    setup: str
    kernel: str
    score: float
    solved_slots: int
    slots: int
    carried: Answer | None
    tokens: float | None

    @property
    def solved(self) -> bool:
        """Whether any slot solved the kernel."""
        return self.solved_slots > 0


def setup_kernel_answers(
    designed: Iterable[Work], found: Mapping[Work, Answer], weights: tuple[float, float, float]
) -> dict[tuple[str, str], KernelAnswer]:
    """R5 per designed (setup, kernel): the median over its solved slots, else 1.

    ``carried`` is the answer at position (n-1)//2 in ascending order of score, so that its times are one
    run's own. Tokens are the median of the slots' totals priced with ``weights`` (fresh, cached, output),
    None without a measurement.
    """
    slots: dict[tuple[str, str], list[Work]] = defaultdict(list)
    for work in dict.fromkeys(designed):
        slots[work.setup, work.kernel].append(work)
    return {key: _over_slots(key, mine, found, weights) for key, mine in slots.items()}


def _over_slots(
    key: tuple[str, str],
    slots: list[Work],
    found: Mapping[Work, Answer],
    weights: tuple[float, float, float],
) -> KernelAnswer:
    held = [found[work] for work in slots if work in found]
    solved = sorted((a for a in held if a.solved), key=lambda a: a.score)
    pool = solved or held
    carried = pool[(len(pool) - 1) // 2] if pool else None
    score = statistics.median(a.score for a in solved) if solved else NOT_DELIVERED
    totals = [t for t in (token_total(a.episode, weights) for a in held) if t is not None]
    tokens = float(statistics.median(totals)) if totals else None
    return KernelAnswer(*key, float(score), len(solved), len(slots), carried, tokens)


def token_total(episode: EpisodeFacts, weights: tuple[float, float, float]) -> float | None:
    """The final attempt's cost in tokens under a card; None when nothing was measured (R7)."""
    counted = (episode.fresh_input_tokens, episode.cached_input_tokens, episode.output_tokens)
    if episode.output_source == "none" or None in counted:
        return None
    total = sum(w * float(c) for w, c in zip(weights, counted, strict=True) if c is not None)
    return total if total > 0 else None
