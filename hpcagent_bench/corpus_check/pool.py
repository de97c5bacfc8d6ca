"""Worker processes that check kernels: a crash or a hang costs one kernel its report and no other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.corpus_check.static import corpus_titles

LIMIT_S = 300.0
"""The longest one step of a kernel's checks may take: one call, one compilation."""

_THREADS = "2"
"""Threads of threaded loops and reductions."""
_ENVIRONMENT = {
    **{"OMP_NUM_THREADS": _THREADS, "OMP_WAIT_POLICY": "passive", "NUMBA_NUM_THREADS": _THREADS},
    # keep freed arrays instead of faulting every page of the next one in: a third of a check's time
    **{"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)},
    "MALLOC_TOP_PAD_": str(1 << 26),
}

Titles = dict[str, tuple[str, str]]


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    kernel: str = ""
    step: str = ""
    deadline: float = field(default=0.0)

    def give(self, kernel: str) -> None:
        self.kernel = kernel
        self.begin("loading")
        self.pipe.send(kernel)

    def begin(self, step: str) -> None:
        self.step = step
        self.deadline = time.monotonic() + LIMIT_S

    def end(self) -> None:
        self.pipe.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def check(
    kernels: Sequence[str], *, jobs: int, root: Path | None = None, fixtures: Path | None = None
) -> Iterator[Report]:
    """Check every kernel named, ``jobs`` at a time, and yield reports as they are done."""
    titles = corpus_titles(root)
    todo = list(reversed(kernels))
    workers: list[_Worker] = []
    try:
        while todo or workers:
            while todo and len(workers) < jobs:
                worker = _start(root, titles, fixtures)
                worker.give(todo.pop())
                workers.append(worker)
            for worker in _ready(workers):
                report = _hear(worker)
                if report is None:
                    continue
                yield report
                if worker.process.is_alive() and todo:
                    worker.give(todo.pop())
                else:
                    workers.remove(worker)
                    worker.end()
    finally:
        for worker in workers:
            worker.end()


def _start(root: Path | None, titles: Titles, fixtures: Path | None) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, root, titles, fixtures), daemon=True)
    with _environment():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """What a worker reads when it starts and this process must not keep."""
    before = dict(os.environ)
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """The workers with something to say, and those past their limit."""
    now = time.monotonic()
    wait = max(0.0, min(worker.deadline for worker in workers) - now)
    heard = connection.wait([worker.pipe for worker in workers], timeout=wait)
    return [worker for worker in workers if worker.pipe in heard or worker.deadline <= time.monotonic()]


def _hear(worker: _Worker) -> Report | None:
    """A finished report, also of a worker that died or ran too long; None when it only says what it does."""
    if not worker.pipe.poll():
        worker.process.kill()
        worker.process.join()
        return _lost(worker, f"took longer than {LIMIT_S:.0f} s")
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        return _lost(worker, _death(worker.process.exitcode))
    if kind == "step":
        worker.begin(value)
        return None
    return Report.from_json(value)


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _lost(worker: _Worker, what: str) -> Report:
    report = Report(worker.kernel)
    hint = "look for indices out of range or a loop without end in the reference"
    report.add("crash", "failed", f"the check {what} during: {worker.step}", hint)
    return report


def _work(pipe: Connection, root: Path | None, titles: Titles, fixtures: Path | None) -> None:
    """Body of a worker: kernel names come in, steps and reports go out."""
    from hpcagent_bench.corpus_check import gate

    done = ["loading"]

    def step(text: str) -> None:
        done[0] = text
        pipe.send(("step", text))

    while True:
        try:
            kernel = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            report = gate.check_kernel(kernel, root, titles, step, fixtures)
        except Exception as error:  # of numba, of a draw: the step says of what, and the others go on
            last = traceback.extract_tb(error.__traceback__)[-1]
            report = Report(kernel)
            where = f"{Path(last.filename).name}:{last.lineno}"
            report.add("error", "failed", f"{type(error).__name__}: {error} ({where}) during: {done[-1]}")
        pipe.send(("done", report.to_json()))
