"""Grading the items of a worklist: one shard of it, each grade committed before the next (scoring.md 1.1)."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from hpcagent_bench import protocols, results_db
from hpcagent_bench.cluster import answers
from hpcagent_bench.cluster.desk import STOPS
from hpcagent_bench.cluster.ledger import PROMOTED
from hpcagent_bench.cluster.serve import fresh_folder
from hpcagent_bench.corpus import sizing, spec
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import grade_under, recording
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.denominator import for_kernel
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.harness.submission import Settings, Submission
from hpcagent_bench.regrade import items, outputs
from hpcagent_bench.regrade.items import Item
from hpcagent_bench.regrade.outputs import Outputs

NODE_FAULT = "infra: node"
NODE_TRIES = 3
"""After so many grades in a row that this node could not make, the shard ends: the rest stays owed."""


@dataclass(frozen=True)
class Options:
    """One shard of a worklist: items[shard::shards]. ``aa`` times the baseline against itself instead."""

    worklist: Path
    out_dir: Path
    shard: int = 0
    shards: int = 1
    aa: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.shard < self.shards:
            raise UserError(
                f"--shard {self.shard} of --shards {self.shards}", "shards count from 0 to shards - 1"
            )


@dataclass
class Report:
    """What a run did. ``outcomes`` counts solved, unsolved, suspect, refused, task, fault, calibrated."""

    items: int
    held: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    promoted: int = 0
    stopped: str = ""

    @property
    def graded(self) -> int:
        """Grades this run recorded."""
        return sum(self.outcomes.values())

    @property
    def complete(self) -> bool:
        """Whether every item of the shard is graded now, none by a fault of the judge."""
        return not self.stopped and not self.outcomes["fault"] and self.graded + self.held == self.items

    def to_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "items": self.items,
            "held": self.held,
            "graded": self.graded,
            "promoted": self.promoted,
            "outcomes": dict(sorted(self.outcomes.items())),
            "stopped": self.stopped or None,
            "complete": self.complete,
        }

    def line(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{number} {name}" for name, number in sorted(self.outcomes.items()))
        told = f"{self.graded} graded ({parts})" if parts else "0 graded"
        told += f", {self.held} were already there" if self.held else ""
        left = self.items - self.graded - self.held
        told += f", {left} left" if left else ""
        return f"{told}; stopped: {self.stopped}" if self.stopped else told


def run(options: Options, context: GradingContext, tell: Callable[[str], None]) -> Report:
    """Grade the shard's items that no output database holds yet; repeating it goes on where it stopped.

    A signal that ends jobs (SIGTERM, Ctrl-C) ends it after the grade under way, which is recorded only when
    nothing in it can be blamed on the signal. UserError: a worklist made for other settings, public seeds.
    """
    todo = items.read(options.worklist)
    _check(todo, options, context)
    mine = todo[options.shard :: options.shards]
    place = Outputs(options.out_dir, options.shard)
    report = Report(len(mine))
    with place.alone(options.aa), _stop_signals() as stopping:
        context.work = fresh_folder(options.out_dir / f".work-{'aa-' if options.aa else ''}{options.shard}")
        # Children inherit the blocked signals of the thread that starts them: none dies of the job's end.
        with ThreadPoolExecutor(1, "grader", _block_stops) as grader:
            grader.submit(_Shard(options, context, place, tell, stopping, report).work, mine).result()
    return report


def _block_stops() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first ending signal sets; outside the main thread it is never set."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return

    def note(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, note) for number in STOPS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check(todo: Sequence[Item], options: Options, context: GradingContext) -> None:
    """Refuse what would be recorded and never credited, before anything is graded."""
    settings = context.settings
    stamp = settings.measurement.credited_protocol
    protocols.credited(stamp)
    if context.seeds.public:
        raise UserError(
            "the seeds are the public ones, and grade-under records grades",
            "make some with: hpcagent-bench seeds new FILE, and name it with --seeds FILE",
        )
    rung = sizing.rung_name(context.sizes)
    for kernel in sorted({item.kernel for item in todo}):
        configured = for_kernel(spec.load(kernel), settings.measurement).name
        for item in (item for item in todo if item.kernel == kernel):
            told = (item.protocol, item.denominator, item.preset or rung)
            wanted = (stamp, configured, rung)
            if told != wanted and not options.aa:
                name = next(n for n, a, b in zip(_NAMES, told, wanted, strict=True) if a != b)
                asked, here = dict(zip(_NAMES, told, strict=True)), dict(zip(_NAMES, wanted, strict=True))
                raise UserError(
                    f"{options.worklist}: {kernel} is owed a grade with {name} {asked[name]}, "
                    f"this would make one with {here[name]}",
                    "name the same --config (or --judge, --sizes, --protocol) as for the worklist",
                )


_NAMES = ("protocol", "denominator", "rung")


@dataclass
class _Shard:
    """The work of one shard, done in the grading thread."""

    options: Options
    context: GradingContext
    place: Outputs
    tell: Callable[[str], None]
    stopping: threading.Event
    report: Report

    @property
    def stamp(self) -> str:
        """The protocol the grades are recorded under."""
        credited = self.context.settings.measurement.credited_protocol
        return protocols.calibration_of(credited).stamp if self.options.aa else credited

    def work(self, mine: Sequence[Item]) -> None:
        """Grade one item after the other, then give back what the context holds."""
        try:
            self._all(mine)
        finally:
            self.context.close()

    def _all(self, mine: Sequence[Item]) -> None:
        held = self.place.held(self.stamp)
        node_faults = 0
        for number, item in enumerate(mine, 1):
            if (item.request_id if item.promoted and not self.options.aa else item.key) in held:
                self.report.held += 1
                continue
            if self.stopping.is_set():
                self.report.stopped = "told to end"
                return
            started = time.monotonic()
            told = self._one(item)
            if told is None:
                self.report.stopped = "told to end"
                return
            where = f"[{number}/{len(mine)}] {item.setup} {item.kernel}"
            self.tell(f"{where}: {told} ({time.monotonic() - started:.1f} s)")
            node_faults = node_faults + 1 if NODE_FAULT in told else 0
            if node_faults == NODE_TRIES:
                self.report.stopped = f"{NODE_TRIES} grades in a row found this node unfit"
                return

    def _one(self, item: Item) -> str | None:
        """Grade and record one item; what became of it, None when the end of the job spoilt the grade."""
        with contextlib.closing(results_db.open_ro(Path(item.db))) as source:
            row = items.find(source, item)
            settings = self.context.settings
            rung = items.rung_of(spec.load(item.kernel), self.context.sizes, settings.service.datatype)
            submission = items.submission_of(row, rung, settings.service.datatype)
            verdict = self._grade(submission)
            spoilt = verdict.fault or not verdict.solved or not all(i.valid for i in verdict.inputs)
            if self.stopping.is_set() and spoilt:
                return None
            return self._record(verdict, item, source, row)

    def _grade(self, submission: Submission) -> Verdict:
        kernel = submission.kernel
        try:
            if self.options.aa:
                return grade_under.calibration_grade(self.context, kernel, self.stamp)
            return grade_under.final_grade(self.context, submission)
        except JudgeFault as fault:
            settings = grade_under.final_settings(self.context, kernel)
            if self.options.aa:
                settings = Settings(protocols.get(self.stamp), settings.cells, settings.seed)
            return answers.faulted(self.context, submission, settings, str(fault))

    def _record(self, verdict: Verdict, item: Item, source: sqlite3.Connection, row: sqlite3.Row) -> str:
        settings = self.context.settings
        path = self.place.path(item, self.options.aa)
        final = recording.regraded_final_of(verdict, settings, row["task_hash"], item.request_id)
        if self.options.aa:
            outputs.add_final(path, source, row, dataclasses.replace(final, credited_speedup=None))
            return self._count("fault" if verdict.fault else "calibrated", final)
        if not item.promoted:
            outputs.add_final(path, source, row, final)
        else:
            promoted = recording.grade_of(
                verdict, "promoted", settings, request_id=item.request_id, optimizer=PROMOTED
            )
            decided = verdict.correct or (final.reason or "").startswith("task:")
            outputs.add_promotion(path, source, row, promoted, final if decided else None)
            self.report.promoted += 1
        return self._count(_outcome(verdict, final), final)

    def _count(self, outcome: str, final: results_db.Grade) -> str:
        self.report.outcomes[outcome] += 1
        if outcome == "calibrated":
            return f"{outcome}, ratio {final.speedup:.3f}"
        if final.credited_speedup is not None:
            return f"{outcome} {final.credited_speedup:.3f}"
        if outcome == "task":
            return str(final.reason)
        return f"{outcome}: {final.reason}" if final.reason else outcome


def _outcome(verdict: Verdict, final: results_db.Grade) -> str:
    if verdict.fault:
        return "fault"
    if (final.reason or "").startswith("task:"):
        return "task"
    if verdict.suspect:
        return "suspect"
    return "solved" if verdict.solved else "unsolved"
