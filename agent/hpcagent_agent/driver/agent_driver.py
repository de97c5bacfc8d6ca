"""Runs one node's agents: ``python -m hpcagent_agent.driver.agent_driver <job>/driver.json``.

Exit code 0: done; 1: every agent failed; 2: nothing to run or a ``driver.json`` that cannot be used; 143:
told to stop by SIGTERM, which marks the running episodes cancelled and harvests nothing (scoring.md T6).
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from hpcagent_agent.driver.attempts import append_attempt, clear_for_relaunch, dumps
from hpcagent_agent.driver.episode import Episode, Summary
from hpcagent_agent.driver.files import write_atomic
from hpcagent_agent.driver.processes import ProcessTable
from hpcagent_agent.driver.record import fault
from hpcagent_agent.driver.settings import Problem, Settings, SettingsError, load
from hpcagent_agent.driver.sockets import socket_folder

__all__ = ["Driver", "append_attempt", "cancelled_by_the_job", "clear_for_relaunch", "main"]

MAX_STAGGER_S = 60.0
STOP_S = 30.0


class Driver:
    """A pool of ``workers`` threads that take problems in their order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stop = threading.Event()
        self.summaries: list[Summary] = []
        self._table = ProcessTable()
        self._print = threading.Lock()
        self._todo: queue.SimpleQueue[Problem] = queue.SimpleQueue()
        self._sockets = Path()

    def run(self) -> int:
        """Work until all problems are done or ``stop`` is set; returns the exit code."""
        self._table.become_subreaper()
        if not self._judge_ready():
            return 143 if self.stop.is_set() else 1
        for problem in self.settings.problems:
            self._todo.put(problem)
        count = min(self.settings.workers, len(self.settings.problems))
        pool = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(count)]
        with socket_folder() as self._sockets:
            for thread in pool:
                thread.start()
            self._join(pool)
        if self.stop.is_set():
            return 143
        return 1 if all(summary.failed for summary in self.summaries) else 0

    def _join(self, pool: list[threading.Thread]) -> None:
        """Wait for the workers; once told to stop, only as long as ending the agents takes."""
        until = float("inf")
        for thread in pool:
            while thread.is_alive() and time.monotonic() < until:
                thread.join(0.2)
                if self.stop.is_set() and until == float("inf"):
                    until = time.monotonic() + STOP_S

    def _work(self, worker: int) -> None:
        self.stop.wait(min(MAX_STAGGER_S, self.settings.stagger_s * worker))
        while not self.stop.is_set():
            try:
                problem = self._todo.get_nowait()
            except queue.Empty:
                return
            self._one(problem, worker)

    def _one(self, problem: Problem, worker: int) -> None:
        try:
            summary = Episode(self.settings, problem, worker, self._table, self._sockets, self.stop).run()
        except Exception as error:  # one broken episode must not take the node's others with it
            line = (
                f"problem {problem.id} {problem.kernel_name}: driver error: {type(error).__name__}: {error}"
            )
            summary = Summary(1, True, line)
            self._record_fault(problem, worker, error)
        with self._print:
            self.summaries.append(summary)
            print(summary.line, flush=True)

    def _record_fault(self, problem: Problem, worker: int, error: Exception) -> None:
        path = self.settings.worker_dir(problem, worker) / "tokens.json"
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, dumps(fault(problem, worker, error)))
        except OSError as second:
            print(f"{path}: {second.strerror}", file=sys.stderr, flush=True)

    def _judge_ready(self) -> bool:
        """Wait for the judge's /health for ``judge_ready_s`` seconds."""
        url = f"{self.settings.judge_url.rstrip('/')}/health"
        until = time.monotonic() + self.settings.judge_ready_s
        with httpx.Client(trust_env=False, timeout=10.0) as client:
            while not self.stop.is_set():
                try:
                    if client.get(url).status_code == 200:
                        return True
                except httpx.HTTPError:
                    pass
                if time.monotonic() >= until:
                    print(f"{url} did not answer within {self.settings.judge_ready_s:g} s", file=sys.stderr)
                    return False
                self.stop.wait(0.3)
        return False


def cancelled_by_the_job(driver: Driver) -> None:
    """From now on SIGTERM and SIGINT stop ``driver``: the job ends under its agents."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.stop.set())


def main(argv: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    args = list(sys.argv[1:] if argv is None else argv)
    if len(args) != 1 or args[0].startswith("-"):
        print("usage: python -m hpcagent_agent.driver.agent_driver <job>/driver.json", file=sys.stderr)
        return 2
    try:
        settings = load(Path(args[0]))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if not settings.problems:
        print(f"{args[0]}: problems: nothing to run", file=sys.stderr)
        return 2
    driver = Driver(settings)
    cancelled_by_the_job(driver)
    return driver.run()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a worker stuck in a promotion's request must not hold the job's end
