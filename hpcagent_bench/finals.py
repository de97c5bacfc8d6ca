"""Final grades: which of a submission's rows stands, and what speaks against it (scoring.md 1.6, X4, X5)."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpcagent_bench import protocols

JUDGE_FAULTS = frozenset({"score_error", "error"})
"""Statuses of a grade that says nothing about the submission."""

NO_FINAL = "its submission has no final grade"
SEALED = "sealed-"
"""How the grading_protocol of a grade made under seal begins."""


def calibrates(stamp: str | None) -> bool:
    """Whether rows of this stamp time a baseline against itself: no submission's grade."""
    known = protocols.REGISTRY.get(stamp or "")
    return known is not None and known.role == "calibration"


@dataclass(frozen=True)
class Final:
    """The final grade of a submission. ``credited`` is S_i, None when the task is not solved."""

    status: str | None = None
    reason: str | None = None
    credited: float | None = None
    suspect: bool = False
    ts_ms: int = 0
    correct: bool | None = None
    stamp: str | None = None
    denominator: str | None = None
    bracket: str | None = None
    grade_id: int | None = None

    @property
    def fault(self) -> bool:
        """Whether the judge failed, not the submission."""
        return self.status in JUDGE_FAULTS and not self.task_changed

    @property
    def task_changed(self) -> bool:
        """Whether it says that the kernel is no longer the one the submission was written for."""
        return (self.reason or "").startswith("task:")

    def precedence(self, stamp: str | None) -> tuple[int, bool, int, int]:
        """Sort key of a submission's final rows; the largest stands.

        The credited stamp before every other and an unnamed one last, a grade before a judge fault, then the
        newest.
        """
        rank = 2 if stamp is not None and self.stamp == stamp else int(self.stamp is not None)
        return (rank, not self.fault, self.ts_ms, self.grade_id or 0)


def final_of(row: sqlite3.Row) -> Final:
    """A row of ``grades`` as a Final."""
    return Final(
        status=row["status"],
        reason=row["reason"],
        credited=row["credited_speedup"],
        suspect=bool(row["suspect"]),
        ts_ms=row["ts_ms"],
        correct=None if row["correct"] is None else bool(row["correct"]),
        stamp=row["timing_reduction"],
        denominator=row["denominator"],
        bracket=row["grading_protocol"],
        grade_id=row["id"],
    )


@dataclass(frozen=True)
class Cut:
    """Grades made before ``before_ms`` (UTC epoch ms) are owed again; ``name`` is a kernel or a reference."""

    name: str
    before_ms: int

    def __str__(self) -> str:
        at = datetime.datetime.fromtimestamp(self.before_ms / 1000, datetime.UTC)
        return f"the cut of {self.name} ({at:%Y-%m-%d %H:%M} UTC)"


@dataclass(frozen=True)
class FinalRule:
    """What a final grade must be to be credited: stamp, denominator by kernel, seal, and no cut after it.

    ``denominators`` holds the kernels that are known; another kernel's denominator is not checked.
    """

    stamp: str
    denominators: Mapping[str, str] = field(default_factory=dict)
    sealed: bool = True
    cuts: Mapping[str, Cut] = field(default_factory=dict)

    def objection(self, kernel: str, final: Final) -> str:
        """Why ``final`` does not stand and its submission is owed another one; "" when it does."""
        if final.stamp != self.stamp:
            told = f"is under {final.stamp}" if final.stamp else "names no protocol"
            return f"its final grade {told}, credited is {self.stamp}"
        wanted = self.denominators.get(kernel)
        if wanted is not None and not same_denominator(final.denominator, wanted):
            return (
                f"its final grade divides by {final.denominator or 'nothing named'}, configured is {wanted}"
            )
        cut = self.cut(kernel, final.ts_ms)
        if cut is not None:
            return f"its final grade is older than {cut}"
        if self.sealed and not (final.bracket or "").startswith(SEALED):
            return "its final grade was made without the seal"
        if self.sealed and final.correct and final.credited is None and not final.suspect:
            return "its final grade is solved and not credited"
        return ""

    def cut(self, kernel: str, ts_ms: int) -> Cut | None:
        """The cut that a grade of this kernel made at ``ts_ms`` is older than."""
        found = self.cuts.get(kernel)
        return found if found is not None and ts_ms < found.before_ms else None


def same_denominator(recorded: str | None, configured: str) -> bool:
    """Whether a grade's recorded denominator is the configured one.

    The PyTorch one is recorded with the device it ran on (scoring.md 1.4).
    """
    if configured == "torch-autotune" and recorded is not None:
        return recorded.removesuffix("-cpu").removesuffix("-gpu") == configured
    return recorded == configured
