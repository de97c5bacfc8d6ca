"""One episode: the attempt loop, its watchers, and what is written when it is over."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from hpcagent_agent.driver import attempts
from hpcagent_agent.driver.attempts import CANCELLED, MARKER, WORKSPACE, Ending, Stop, now_ms
from hpcagent_agent.driver.command import Places, clean_env, command
from hpcagent_agent.driver.files import write_atomic
from hpcagent_agent.driver.processes import ProcessTable, Running
from hpcagent_agent.driver.promotion import promote
from hpcagent_agent.driver.record import Attempt, tokens_record
from hpcagent_agent.driver.seal_relay import Relay
from hpcagent_agent.driver.settings import Problem, Settings
from hpcagent_agent.driver.token_cost import read_usage
from hpcagent_agent.prompts import render

POLL_S = 0.2
TOKEN_POLL_S = 3.0
NO_END = float("inf")
BY_SIGTERM = 143
FINE = frozenset({0, 123, 124, 125, 126})


@dataclass(frozen=True)
class Summary:
    """What the driver says about a finished problem."""

    returncode: int
    failed: bool
    line: str


class Episode:
    """Runs one problem on pool slot ``worker`` until it is over, told to stop, or past its deadline."""

    def __init__(
        self,
        settings: Settings,
        problem: Problem,
        worker: int,
        table: ProcessTable,
        sockets: Path,
        stop: threading.Event,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.worker = worker
        self.stop = stop
        self.dir = settings.worker_dir(problem, worker)
        self.workspace = self.dir / WORKSPACE
        self._table = table
        self._sockets = sockets
        self._log = self.dir / f"{settings.harness.name}.log"
        self._done: list[Attempt] = []

    def run(self) -> Summary:
        """The whole episode. Raises OSError when the run tree cannot be written."""
        self.dir.mkdir(parents=True, exist_ok=True)
        problem, limit = self.problem, self.settings.timeout_s
        prompt = problem.prompt or render(
            problem.kernel_name, problem.language, self.settings.submission_mode, limit
        )
        write_atomic(self.dir / "prompt.txt", prompt)
        start = time.monotonic()
        relay = Relay(
            self._sockets / f"{problem.id}.sock",
            self.settings.judge_url,
            problem.token,
            self.settings.submission_mode,
            self.dir / MARKER,
            self.settings.judge_timeout_s,
        )
        try:
            self._attempts(relay, start + limit if limit else NO_END)
            self._write_tokens()
            note = self._close(relay)
        finally:
            relay.close()
        return self._summary(relay, note, time.monotonic() - start)

    def _attempts(self, relay: Relay, deadline: float) -> None:
        while True:
            attempt = Attempt(len(self._done) + 1, now_ms())
            identity = {"problem": self.problem.id, "kernel": self.problem.kernel, "attempt": attempt.number}
            folder = attempts.next_agent_folder(
                self.settings.run_dir,
                self.settings.shared_dir,
                {**identity, "worker_dir": self.dir.name, "episode_id": self.problem.episode_id},
            )
            relay.begin_attempt()
            attempt.ending = self._attempt(relay, folder, deadline)
            attempt.end_ms = now_ms()
            attempts.collect_usage(self.dir)
            attempt.usage = read_usage(self.dir / attempts.USAGE)
            self._done.append(attempt)
            again = self._relaunch(attempt, relay, deadline)
            if again:
                transcripts = [self._log.name, attempts.USAGE]
                attempts.clear_for_relaunch(self.dir, folder, attempt.number, transcripts)
            attempts.append_attempt(
                self.dir, attempt.number, attempt.start_ms, attempt.end_ms, attempt.ending, again
            )
            if not again:
                return

    def _relaunch(self, attempt: Attempt, relay: Relay, deadline: float) -> bool:
        left = attempt.number < self.settings.max_attempts and time.monotonic() < deadline
        return attempt.ending.crashed and left and not self._over(relay) and not self.stop.is_set()

    def _over(self, relay: Relay) -> bool:
        """Whether the episode's one submission is graded: nothing later can change its answer."""
        return relay.spent.is_set() and self.settings.submission_mode != "multi"

    def _attempt(self, relay: Relay, folder: Path, deadline: float) -> Ending:
        problem = self.problem
        task = self.settings.shared_dir / "tasks" / problem.kernel_name
        self.workspace.mkdir()
        (self.workspace / ".home").mkdir()
        shutil.copy2(self.dir / "prompt.txt", self.workspace / "prompt.txt")
        if not task.is_dir():
            return Ending(1, "error", False, None, f"{task} is missing")
        shutil.copytree(task, self.workspace / "task", symlinks=False)
        deadline_ms = None if deadline == NO_END else now_ms() + int((deadline - time.monotonic()) * 1000)
        places = Places(self.workspace, folder, self.settings.shared_dir, task, relay.socket_path)
        argv = command(self.settings, problem, self.worker, places, deadline_ms)
        try:
            running = self._table.launch(argv, self._log, self.dir, clean_env())
        except OSError as error:
            return Ending(1, "crash", True, None, f"{argv[0]}: {error.strerror}")
        stop, code = Stop.ITSELF, None
        try:
            stop, code = self._watch(running, relay, deadline)
        finally:
            running.end(self.settings.kill_grace_s if stop is not Stop.ITSELF else 0.0)
        if stop is Stop.CANCELLED and self._over(relay):
            stop = Stop.SUBMITTED  # its answer is in: the job's end took nothing from it
        if stop is Stop.CANCELLED:
            write_atomic(self.dir / CANCELLED, json.dumps({"ts_ms": now_ms()}) + "\n")
        return attempts.classify(stop, code or 0, attempts.closing_record(self.workspace))

    def _watch(self, running: Running, relay: Relay, deadline: float) -> tuple[Stop, int | None]:
        """Wait for the agent to end, or for the first cap it meets. The deadline wins ties.

        A job that ends cancels the episode, unless its submission is already graded (scoring.md T6).
        """
        submitted_until = NO_END
        tokens_due = time.monotonic()
        while True:
            code = running.wait(min(POLL_S, max(0.0, deadline - time.monotonic())))
            if code == BY_SIGTERM:
                self.stop.wait(POLL_S)  # a job that ends may tell its agents before it tells us
            now = time.monotonic()
            over = self._over(relay)
            if self.stop.is_set() and not over:
                return Stop.CANCELLED, code
            if now >= deadline:
                return Stop.DEADLINE, code
            if code is not None:
                return Stop.ITSELF, code
            if over:
                submitted_until = min(submitted_until, now + self.settings.submitted_grace_s)
            if now >= submitted_until or (over and self.stop.is_set()):
                return Stop.SUBMITTED, None
            if self.settings.max_tokens is not None and now >= tokens_due:
                tokens_due = now + TOKEN_POLL_S
                if read_usage(self.workspace / attempts.USAGE).effective >= self.settings.max_tokens:
                    return Stop.TOKENS, None

    def _close(self, relay: Relay) -> str:
        """Wait for a grade under way, then submit for an agent that scored correct but never submitted."""
        relay.settle(self.settings.judge_timeout_s, self.stop)
        if self.stop.is_set() or relay.spent.is_set():
            return "submitted" if relay.spent.is_set() else "cancelled"
        return promote(self.settings, self.problem, self.dir, relay)

    def _write_tokens(self) -> None:
        cancelled = (self.dir / CANCELLED).exists()
        record = tokens_record(self.problem, self.worker, self._done, cancelled)
        write_atomic(self.dir / "tokens.json", attempts.dumps(record))

    def _summary(self, relay: Relay, note: str, seconds: float) -> Summary:
        final = self._done[-1].ending
        count = f"{len(self._done)} attempt{'s' if len(self._done) > 1 else ''}"
        parts = [final.result, count, f"{seconds:.1f} s", note]
        if final.detail and final.returncode not in FINE:
            parts.append(" ".join(final.detail.split())[:200])
        text = ", ".join(parts)
        failed = final.returncode not in FINE and not relay.spent.is_set() and final.returncode != 143
        line = f"problem {self.problem.id} {self.problem.kernel_name}: rc {final.returncode}, {text}"
        return Summary(final.returncode, failed, line)
