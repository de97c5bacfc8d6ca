"""What a grade costs over the work it cannot avoid: ``python -m bench.judge_cost``.

Per kernel a real /submit over HTTP, first and repeated. Irreducible work is the build and every call of both
sides, each at the time the runner's own clock gave it; the rest (drawing, handing over, comparing, starting
processes, recording, HTTP) is overhead. Ratios are taken inside one run, so the machine's speed cancels.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from bench import empty_kernel
from hpcagent_bench import study_tags, translators
from hpcagent_bench.corpus import spec

WORK_FILE_ENV = "HPCAGENT_BENCH_WORK_LOG"


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds of one /submit, how much of them were builds and calls, and the median call."""

    kernel: str
    round: str
    wall_s: float
    work_s: float
    call_ms: float

    @property
    def ratio(self) -> float:
        """Wall time over irreducible work."""
        return self.wall_s / self.work_s


@contextmanager
def judge(folder: Path, sizes: str) -> Iterator[tuple[str, float, Path]]:
    """A judge of its own process; yields its address, its start time in seconds, and its work log."""
    log = folder / "work.jsonl"
    seeds = folder / "seeds.json"
    seeds.write_text(json.dumps({"first": 1, "second": 2, "third": 3}))
    service = folder / "judge" / "rank-0" / "service.json"
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.logged_judge", str(folder), str(seeds), sizes, str(log)],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not service.exists():
            if process.poll() is not None:
                raise SystemExit("the judge did not start")
            time.sleep(0.01)
        url = json.loads(service.read_text())["url"]
        httpx.get(f"{url}/health").raise_for_status()
        yield url, time.perf_counter() - begin, log
    finally:
        process.terminate()
        process.wait()


def submit(url: str, kernel: spec.Kernel, log: Path, round_name: str) -> Cost:
    """One /submit of the emitted C reference."""
    before = log.read_text().count("\n") if log.exists() else 0
    body = {"kernel": kernel.name, "language": "c", "rank": 0, "source": translators.emit(kernel, "c")}
    begin = time.perf_counter()
    answer = httpx.post(f"{url}/submit", json=body, timeout=1800)
    wall = time.perf_counter() - begin
    if answer.status_code != 200 or answer.json()["correct"] != "yes":
        raise SystemExit(f"{kernel.name}: {answer.status_code} {answer.text}")
    entries = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    calls = [e["ns"] for e in entries if e["what"] == "call"]
    work = sum(calls) / 1e9 + sum(e["s"] for e in entries if e["what"] == "build")
    return Cost(kernel.name, round_name, wall, work, statistics.median(calls) / 1e6)


def measure(sizes: str, kernels: list[str], say: Callable[[str], None]) -> tuple[list[Cost], float]:
    """First and repeated /submit of each kernel, and the judge's start time in seconds."""
    costs = []
    with tempfile.TemporaryDirectory(prefix="hpcagent-bench-") as folder:
        with judge(Path(folder), sizes) as (url, start_s, log):
            for name in kernels:
                kernel = spec.load(name)
                for round_name in ("first", "repeated"):
                    say(f"{name} ({round_name})")
                    costs.append(submit(url, kernel, log, round_name))
    return costs, start_s


def show(costs: list[Cost], start_s: float, empty: empty_kernel.Bracket, sizes: str) -> None:
    """Print the table and the two single figures."""
    console = Console()
    table = Table(title=f"/submit at sizes={sizes}")
    for column in ("kernel", "call ms", "first s", "ratio", "repeated s", "work s", "ratio"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for first, again in zip(costs[::2], costs[1::2], strict=True):
        table.add_row(
            first.kernel,
            f"{again.call_ms:.1f}",
            f"{first.wall_s:.2f}",
            f"{first.ratio:.2f}",
            f"{again.wall_s:.2f}",
            f"{again.work_s:.2f}",
            f"{again.ratio:.2f}",
        )
    console.print(table)
    console.print(f"median repeated ratio {statistics.median(c.ratio for c in costs[1::2]):.2f}")
    console.print(f"judge start {start_s:.2f} s")
    console.print(
        f"an empty kernel reads {empty.inside_ns:.0f} ns inside, outside {empty.gap_us:.0f} us more"
    )


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="laptop", help="rung, from conf/sizes (default laptop)")
    parser.add_argument("--kernels", nargs="*", help="default: the quickstart roster")
    parser.add_argument("--json", action="store_true", help="for scripts")
    options = parser.parse_args()
    kernels = options.kernels or list(study_tags.load_tag("quickstart"))
    quiet = options.json

    def say(what: str) -> None:
        if not quiet:
            print(what, file=sys.stderr, flush=True)

    costs, start_s = measure(options.sizes, kernels, say)
    empty = empty_kernel.measure()
    if options.json:
        rows: list[dict[str, Any]] = [{**dataclasses.asdict(c), "ratio": c.ratio} for c in costs]
        print(json.dumps({"submits": rows, "judge_start_s": start_s, "bracket": dataclasses.asdict(empty)}))
    else:
        show(costs, start_s, empty, options.sizes)


if __name__ == "__main__":
    main()
