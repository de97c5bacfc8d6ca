"""What a grade of next to nothing costs: ``python -m bench.small_grade``.

A 64 KiB five-point stencil against the C reference: its timed calls are under one per cent of a grade, so
everything seen here is builds, processes, drawing and HTTP.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
from pathlib import Path

from rich.console import Console

from bench.judge_cost import phase_shares
from bench.judge_process import Graded, Judge, grade, judge
from hpcagent_bench.corpus import spec

KERNEL = "rim_peeled_stencil"
BYTES = 64 << 10


@dataclasses.dataclass(frozen=True)
class Figures:
    """Median wall seconds of repeated grades, and how a /submit's time divides."""

    submit_s: float
    score_s: float
    submit_builds_s: float
    phases: dict[str, float]


def _repeated(served: Judge, route: str, times: int) -> list[Graded]:
    kernel = spec.load(KERNEL)
    grade(served, route, kernel)
    return [grade(served, route, kernel) for _ in range(times)]


def measure(times: int = 9) -> Figures:
    """Grades against the C reference alone, after one that warms the judge."""
    with tempfile.TemporaryDirectory(prefix="hpcagent-small-") as folder:
        with judge(Path(folder), str(BYTES), "c") as served:
            submits = _repeated(served, "submit", times)
            scores = _repeated(served, "score", times)
    return Figures(
        statistics.median(g.wall_s for g in submits),
        statistics.median(g.wall_s for g in scores),
        statistics.median(g.builds_s for g in submits),
        phase_shares(submits),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="for scripts")
    options = parser.parse_args()
    found = measure()
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    console = Console()
    console.print(
        f"{KERNEL} on {BYTES >> 10} KiB: /submit {found.submit_s:.2f} s, /score {found.score_s:.2f} s"
    )
    shares = ", ".join(f"{phase} {share:.0%}" for phase, share in found.phases.items())
    console.print(f"a /submit: builds {found.submit_builds_s:.2f} s one after the other; wall time: {shares}")


if __name__ == "__main__":
    main()
