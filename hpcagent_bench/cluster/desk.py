"""The judge's desk: one grade at a time, committed to the shard before it is answered."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hpcagent_bench.cluster import answers, replies
from hpcagent_bench.cluster.identity import Caller
from hpcagent_bench.cluster.ledger import Ledger
from hpcagent_bench.cluster.line import Full, Line
from hpcagent_bench.cluster.refusals import Refused
from hpcagent_bench.cluster.replies import Answer, Asked, Replies
from hpcagent_bench.cluster.requests import Request
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import grade_under
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.harness.submission import Settings, Submission
from hpcagent_bench.harness.timed.race import RaceResult

if TYPE_CHECKING:
    from hpcagent_bench.cluster.profiling.looks import Look
    from hpcagent_bench.cluster.wire import ProfileAnswer

Result = TypeVar("Result")
Grader = Callable[[GradingContext, Submission], Verdict]
Settler = Callable[[GradingContext, Kernel], Settings]

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

RETRY_S = 30
"""When a request refused for want of room may try again."""


def _keep_stops_from_children() -> None:
    """Block in this thread, and so in all it starts, the signals that end a job.

    A scheduler sends them to every process of a job at once: a grading child or a compiler that died of one
    would read as a submission that crashed or does not build. The judge hears them and ends its children.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)


@dataclass
class Desk:
    """Grades requests one after the other in a thread of its own, and writes what it grades.

    Episodes take turns. A grade goes on when its client hangs up, and is recorded all the same. A request
    that comes again under its own key is answered without a second grade.
    """

    context: GradingContext
    shard: Path | None
    _line: Line = field(init=False, repr=False)
    _replies: Replies = field(init=False, repr=False)
    _ledger: Ledger = field(init=False, repr=False)
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _submitting: set[tuple[tuple[int, str, int], str]] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self._line = Line(self.context.settings.service.max_waiting, self._take_the_desk)
        self._ledger = Ledger(self.shard, self.context.settings)
        self._replies = Replies(None if self.shard is None else self.shard.parent / "answers")

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn or are being graded."""
        return self._line.waiting

    def position(self, caller: Caller, request_id: str | None = None) -> int | None:
        """How many go before the caller's first request, or the one of this key; None when it has none."""
        return self._line.position(caller.episode.key, request_id)

    def score(self, request: Request, caller: Caller) -> Future[Answer]:
        """Queue a preview grade."""
        return self._once("score", request, caller, self._queue_score)

    def submit(self, request: Request, caller: Caller) -> Future[Answer]:
        """Queue a final grade; 409 when a limited episode's one submission is spent or being graded."""
        return self._once("submit", request, caller, self._queue_submit)

    def baseline(self, kernel: Kernel, caller: Caller) -> Future[RaceResult]:
        """Queue a race of the references alone."""
        return self._put(caller, lambda: grade_under.time_baseline(self.context, kernel))

    def profile(self, look: Look, request: Request, caller: Caller) -> Future[ProfileAnswer]:
        """Queue a look at a delivery; nothing of it is graded or recorded."""
        from hpcagent_bench.cluster.profiling import looks

        return self._put(caller, lambda: looks.run(self.context, look, request), request)

    def between_grades(self, work: Callable[[], Result], caller: Caller) -> Future[Result]:
        """Queue work of the judge's own that would disturb a timing."""
        return self._put(caller, work)

    def stop(self) -> None:
        """From now on a grade counts only when nothing in it speaks against the submission."""
        self._stopping.set()

    def close(self) -> None:
        """Drop what waits, let nothing new in, end the children."""
        self._line.close()
        self.context.close()

    def _take_the_desk(self) -> None:
        """What the grading thread begins with: every core of this judge, and no ear for stop signals."""
        _keep_stops_from_children()
        with contextlib.suppress(OSError):  # cores taken away since are found before each grade
            os.sched_setaffinity(0, self.context.granted)

    # Queueing

    def _once(
        self,
        route: str,
        request: Request,
        caller: Caller,
        queue: Callable[[Request, Caller, Asked | None], Future[Answer]],
    ) -> Future[Answer]:
        """Queue the request, unless its key shows that it has been answered or is about to be."""
        asked = replies.asked(route, request, caller)
        try:
            with self._guard:
                if asked is None:
                    return queue(request, caller, None)
                found = self._replies.find(asked) or self._recorded(route, request, caller)
                if found is None:
                    found = queue(request, caller, asked)
                    self._replies.begin(asked, found)
                else:
                    request.discard()
                return found
        except Refused:
            request.discard()
            raise

    def _queue_score(self, request: Request, caller: Caller, asked: Asked | None) -> Future[Answer]:
        return self._put(caller, lambda: self._score(request, caller, asked), request)

    def _queue_submit(self, request: Request, caller: Caller, asked: Asked | None) -> Future[Answer]:
        slot = (caller.episode.key, request.submission.kernel.name)
        if caller.limited:
            if slot in self._submitting or self._ledger.submitted(caller, request.submission.kernel):
                raise Refused(409, "this episode's one submission is already graded")
            self._submitting.add(slot)

        def work() -> Answer:
            try:
                return self._submit(request, caller, asked)
            finally:
                self._submitting.discard(slot)

        try:
            return self._put(caller, work, request)
        except Refused:
            self._submitting.discard(slot)
            raise

    def _put(self, caller: Caller, work: Callable[[], Any], request: Request | None = None) -> Future[Any]:
        def run() -> Any:
            try:
                return work()
            finally:
                if request is not None:
                    request.discard()
                self.context.progress("idle")

        own = None if caller.kernel is None else self.context.settings.service.max_waiting_per_episode
        name = None if request is None else request.request_id
        try:
            return self._line.put(caller.episode.key, run, name=name, most_own=own)
        except Full as full:
            raise Refused(
                503,
                "too many requests wait for this judge; try again later",
                retry_s=RETRY_S,
                waiting=full.waiting,
            ) from None
        except RuntimeError:
            raise Refused(503, "the judge is stopping", retry_s=RETRY_S) from None

    # Grading

    def _score(self, request: Request, caller: Caller, asked: Asked | None) -> Answer:
        self.context.progress("grading", kernel=request.submission.kernel.name, route="score")
        verdict = self._graded(request, grade_under.score_grade, grade_under.preview_settings)
        request_id = request.request_id or uuid.uuid4().hex
        self._ledger.record("score", verdict, request, caller, request_id)
        answer = {**answers.score_answer(verdict), "request_id": request_id}
        if request.ignored:
            answer["build_ignored"] = list(request.ignored)
        return self._answer(answer, verdict, asked)

    def _submit(self, request: Request, caller: Caller, asked: Asked | None) -> Answer:
        self.context.progress("grading", kernel=request.submission.kernel.name, route="submit")
        verdict = self._graded(request, grade_under.submit_grade, grade_under.final_settings)
        request_id = request.request_id or uuid.uuid4().hex
        self._ledger.record("submit", verdict, request, caller, request_id)
        answer = answers.submit_answer(verdict, request_id, self.context.settings.service.submit_feedback)
        return self._answer(answer, verdict, asked)

    def _graded(self, request: Request, grade: Grader, settings_for: Settler) -> Verdict:
        """A grade; a fault that kept it from beginning (the node is not fit) is its reason."""
        try:
            verdict = grade(self.context, request.submission)
        except JudgeFault as fault:
            settings = settings_for(self.context, request.submission.kernel)
            verdict = answers.faulted(self.context, request.submission, settings, str(fault))
        return self._check(verdict)

    def _answer(self, answer: Answer, verdict: Verdict, asked: Asked | None) -> Answer:
        """``answer``, kept for when it is asked for again; a judge's fault is none: the next try may do."""
        if asked is not None and not verdict.fault:
            self._replies.keep(asked, answer)
        return answer

    def _check(self, verdict: Verdict) -> Verdict:
        """Refuse to blame a submission for what the end of the job may have done to its grade."""
        fine = verdict.solved and all(i.valid for i in verdict.inputs)
        if self._stopping.is_set() and not fine:
            raise Refused(503, "the judge is stopping and could not finish this grade", retry_s=RETRY_S)
        return verdict

    def _recorded(self, route: str, request: Request, caller: Caller) -> Future[Answer] | None:
        """The verdict on a submission of this key that was recorded and whose answer was lost."""
        if route != "submit":
            return None
        status = self._ledger.submitted(caller, request.submission.kernel, request.request_id)
        if status is None:
            return None
        found: Future[Answer] = Future()
        found.set_result({"correct": "yes" if status == "ok" else "no", "request_id": request.request_id})
        return found
