"""What a grade costs over the work it cannot avoid: ``python -m bench.judge_cost``.

Per kernel a real /submit over HTTP, first and repeated. Irreducible work is the submission's build, its fresh
rebuild and its sanitized build, and every call of both sides, each at the time its runner's clock gave; the
rest (drawing, handing over, comparing, starting processes, recording, HTTP) is overhead. Ratios are taken
inside one run, so the machine's speed cancels.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import empty_kernel
from bench.judge_process import Graded, grade, judge
from hpcagent_bench.corpus import spec

COMPUTING = (
    "tsvc_2_s231",
    "tsvc_2_s233",
    "tsvc_2_s235",
    "tsvc_2_s2275",
    "fuse_diamond",
    "column_order_rank_update",
    "heat_3d_jacobi",
    "yee_fdtd_2d",
    "graph_laplacian_smooth",
    "l1_jacobi",
)
"""Kernels whose call takes 20 ms or more on 64 MiB: where overhead is to be small."""
STREAMING = (
    "argmax_with_index",
    "ext_war_unit",
    "tsvc_2_s115",
    "tsvc_2_s311",
    "tsvc_2_vtvtv",
    "wf_triangular",
)
"""Kernels that pass over 64 MiB about once, in a few milliseconds: drawing and comparing move as much."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """The first and a repeated /submit of one kernel."""

    kernel: str
    first: Graded
    again: Graded

    @property
    def ratio(self) -> float:
        """Wall time over irreducible work of the repeated one."""
        return self.again.wall_s / self.again.work_s


def measure(sizes: str, kernels: Sequence[str], say: Callable[[str], None]) -> tuple[list[Cost], float]:
    """First and repeated /submit of each kernel, and the judge's start time in seconds."""
    costs = []
    with tempfile.TemporaryDirectory(prefix="hpcagent-bench-") as folder:
        with judge(Path(folder), sizes) as served:
            for name in kernels:
                say(name)
                kernel = spec.load(name)
                costs.append(Cost(name, grade(served, "submit", kernel), grade(served, "submit", kernel)))
            return costs, served.start_s


def phase_shares(grades: Sequence[Graded]) -> dict[str, float]:
    """Median of each phase's share of a grade's wall time, largest first."""
    names = {phase for graded in grades for phase in graded.phases}
    shares = {
        phase: statistics.median(g.phases.get(phase, 0.0) / g.wall_s for g in grades) for phase in names
    }
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def show(costs: Sequence[Cost], title: str, console: Console) -> None:
    """One row a kernel, then the median and the share of each phase."""
    table = Table(title=title)
    for column in ("kernel", "call ms", "first s", "repeated s", "builds s", "calls s", "ratio"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for cost in costs:
        again = cost.again
        figures = (again.wall_s, again.builds_s, again.calls_s, cost.ratio)
        table.add_row(
            cost.kernel, f"{again.call_ms:.1f}", f"{cost.first.wall_s:.2f}", *(f"{x:.2f}" for x in figures)
        )
    console.print(table)
    console.print(f"median ratio of a repeated /submit {statistics.median(c.ratio for c in costs):.2f}")
    shares = ", ".join(
        f"{phase} {share:.1%}" for phase, share in phase_shares([c.again for c in costs]).items()
    )
    console.print(f"where its time goes: {shares}\n")


def _row(cost: Cost) -> dict[str, Any]:
    return {**dataclasses.asdict(cost), "ratio": cost.ratio}


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="laptop", help="rung, from conf/sizes or in bytes (default laptop)"
    )
    parser.add_argument("--kernels", nargs="*", help="default: ten that compute, six that stream")
    parser.add_argument("--json", action="store_true", help="for scripts")
    options = parser.parse_args()

    def say(what: str) -> None:
        if not options.json:
            print(what, file=sys.stderr, flush=True)

    kernels = options.kernels or [*COMPUTING, *STREAMING]
    costs, start_s = measure(options.sizes, kernels, say)
    empty = empty_kernel.measure()
    if options.json:
        rows = [_row(cost) for cost in costs]
        print(json.dumps({"submits": rows, "judge_start_s": start_s, "bracket": dataclasses.asdict(empty)}))
        return
    console = Console()
    computing = [c for c in costs if c.kernel not in STREAMING]
    streaming = [c for c in costs if c.kernel in STREAMING]
    for title, part in (("calls of 20 ms and more", computing), ("calls at the speed of memory", streaming)):
        if part:
            show(part, f"/submit at sizes={options.sizes}: {title}", console)
    console.print(f"judge start {start_s:.2f} s")
    console.print(f"an empty kernel reads {empty.inside_ns:.0f} ns, outside {empty.gap_us:.0f} us more")


if __name__ == "__main__":
    main()
