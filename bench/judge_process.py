"""A judge in a process of its own for benches: started, asked over HTTP, read through its work log."""

from __future__ import annotations

import dataclasses
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from hpcagent_bench import translators
from hpcagent_bench.corpus.spec import Kernel

SEEDS = {"first": 1, "second": 2, "third": 3}


@dataclasses.dataclass(frozen=True)
class Judge:
    """A serving judge: its address, its process number, how long it took to serve, and its work log."""

    url: str
    pid: int
    start_s: float
    log: Path


@dataclasses.dataclass(frozen=True)
class Graded:
    """One grade as its client saw it: wall seconds, and from the log builds, calls and phases in seconds."""

    wall_s: float
    builds_s: float
    calls_s: float
    call_ms: float
    phases: dict[str, float]

    @property
    def work_s(self) -> float:
        """What no judge could avoid: the builds and every call of both sides."""
        return self.builds_s + self.calls_s


@contextmanager
def judge(folder: Path, sizes: str, denominator: str = "") -> Iterator[Judge]:
    """A judge at a rung (a name from conf/sizes, or bytes); ``denominator`` replaces the configured ones."""
    log = folder / "work.jsonl"
    log.touch()
    seeds = folder / "seeds.json"
    seeds.write_text(json.dumps(SEEDS))
    service = folder / "judge" / "rank-0" / "service.json"
    begin = time.perf_counter()
    command = ["bench.logged_judge", str(folder), str(seeds), sizes, str(log), denominator]
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.DEVNULL)
    try:
        while not service.exists():
            if process.poll() is not None:
                raise SystemExit("the judge did not start")
            time.sleep(0.01)
        url = json.loads(service.read_text())["url"]
        httpx.get(f"{url}/health").raise_for_status()
        yield Judge(url, process.pid, time.perf_counter() - begin, log)
    finally:
        process.terminate()
        process.wait()


def grade(judge: Judge, route: str, kernel: Kernel) -> Graded:
    """One /submit or /score of the emitted C reference, which must be found right."""
    before = judge.log.read_text().count("\n")
    body = {"kernel": kernel.name, "language": "c", "rank": 0, "source": translators.emit(kernel, "c")}
    begin = time.perf_counter()
    answer = httpx.post(f"{judge.url}/{route}", json=body, timeout=3600)
    wall = time.perf_counter() - begin
    if answer.status_code != 200 or answer.json()["correct"] not in ("yes", True):
        raise SystemExit(f"{kernel.name}: {answer.status_code} {answer.text}")
    entries: list[dict[str, Any]] = [json.loads(line) for line in judge.log.read_text().splitlines()[before:]]
    calls = [e["ns"] for e in entries if e["what"] == "call"]
    builds = sum(e["s"] for e in entries if e["what"] == "build")
    phases: dict[str, float] = next((e["phases"] for e in entries if e["what"] == "grade"), {})
    return Graded(wall, builds, sum(calls) / 1e9, statistics.median(calls) / 1e6, phases)
