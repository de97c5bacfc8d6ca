"""The judge's desk: one grade at a time, committed to the shard before it is answered."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcagent_bench import results_db
from hpcagent_bench.cluster import answers
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.requests import Refused, Request
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import grade_under, recording
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.race import RaceResult
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.results_rows import Kind

PROMOTED = "promoted-unsubmitted"
HARVESTED = "harvested-workspace"

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def _keep_stops_from_children() -> None:
    """Block in this thread, and so in all it starts, the signals that end a job.

    A scheduler sends them to every process of a job at once: a grading child or a compiler that died of one
    would read as a submission that crashed or does not build. The judge hears them and ends its children.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)


@dataclass
class Desk:
    """Grades requests one after the other in a thread of its own, and writes what it grades.

    A grade goes on when its client hangs up, and is recorded all the same.
    """

    context: GradingContext
    shard: Path | None
    _queue: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "grader", _keep_stops_from_children), repr=False
    )
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _submitting: set[tuple[tuple[int, str, int], str]] = field(default_factory=set, repr=False)
    waiting: int = 0

    def score(self, request: Request, caller: Caller) -> Future[dict[str, Any]]:
        """Queue a preview grade."""
        return self._put(lambda: self._score(request, caller))

    def submit(self, request: Request, caller: Caller) -> Future[dict[str, Any]]:
        """Queue a final grade; 409 when a limited episode's one submission is spent or being graded."""
        slot = (caller.episode.key, request.submission.kernel.name)
        if caller.limited:
            with self._guard:
                if slot in self._submitting or self._spent(caller, request.submission.kernel):
                    raise Refused(409, "this episode's one submission is already graded")
                self._submitting.add(slot)

        def work() -> dict[str, Any]:
            try:
                return self._submit(request, caller)
            finally:
                with self._guard:
                    self._submitting.discard(slot)

        return self._put(work)

    def baseline(self, kernel: Kernel) -> Future[RaceResult]:
        """Queue a race of the references alone."""
        return self._put(lambda: grade_under.time_baseline(self.context, kernel))

    def stop(self) -> None:
        """From now on a grade counts only when nothing in it speaks against the submission."""
        self._stopping.set()

    def close(self) -> None:
        """Drop what waits, let nothing new in, end the children."""
        self._queue.shutdown(wait=False, cancel_futures=True)
        self.context.close()

    def _put(self, work: Callable[[], Any]) -> Future[Any]:
        with self._guard:
            self.waiting += 1

        def run() -> Any:
            try:
                return work()
            finally:
                with self._guard:
                    self.waiting -= 1
                self.context.progress("idle")

        return self._queue.submit(run)

    def _score(self, request: Request, caller: Caller) -> dict[str, Any]:
        self.context.progress("grading", kernel=request.submission.kernel.name, route="score")
        verdict = self._check(grade_under.score_grade(self.context, request.submission))
        request_id = uuid.uuid4().hex
        self._record(verdict, "score", request, caller, request_id)
        return {**answers.score_answer(verdict), "request_id": request_id}

    def _submit(self, request: Request, caller: Caller) -> dict[str, Any]:
        self.context.progress("grading", kernel=request.submission.kernel.name, route="submit")
        verdict = self._check(grade_under.submit_grade(self.context, request.submission))
        request_id = uuid.uuid4().hex
        kinds: dict[str | None, Kind] = {PROMOTED: "promoted", HARVESTED: "harvested"}
        self._record(verdict, kinds.get(request.optimizer, "submit"), request, caller, request_id)
        return answers.submit_answer(verdict, request_id, self.context.settings.service.submit_feedback)

    def _check(self, verdict: Verdict) -> Verdict:
        """Refuse to blame a submission for what the end of the job may have done to its grade."""
        fine = verdict.solved and all(i.valid for i in verdict.inputs)
        if self._stopping.is_set() and not fine:
            raise Refused(503, "the judge is stopping and could not finish this grade")
        return verdict

    def _record(
        self, verdict: Verdict, kind: Kind, request: Request, caller: Caller, request_id: str
    ) -> None:
        """One transaction: the grade, its cells and sources, and for an accepted submit its final row."""
        if self.shard is None:
            return
        settings = self.context.settings
        grade = recording.grade_of(
            verdict, kind, settings, request_id=request_id, optimizer=request.optimizer, tokens=request.tokens
        )
        final = recording.final_of(verdict, grade) if kind != "score" else None
        conn = results_db.open_rw(self.shard)
        try:
            results_db.record(conn, caller.setup, caller.episode, grade, final)
        finally:
            conn.close()

    def _spent(self, caller: Caller, kernel: Kernel) -> bool:
        """Whether the shard holds a graded submit of the episode; a judge fault does not spend it."""
        if self.shard is None:
            return False
        conn = results_db.open_ro(self.shard)
        try:
            marks = ",".join("?" * len(results_db.SUBMIT_LIKE))
            row = conn.execute(
                "SELECT 1 FROM grades g JOIN episodes e ON e.id = g.episode_id "
                "WHERE coalesce(e.job, -1) = ? AND e.label = ? AND e.rep = ? AND g.kernel = ? "
                f"AND g.kind IN ({marks}) AND g.status <> 'score_error' LIMIT 1",
                (*caller.episode.key, kernel.name, *results_db.SUBMIT_LIKE),
            ).fetchone()
        finally:
            conn.close()
        return row is not None
