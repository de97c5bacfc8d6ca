"""How much memory a grade takes: ``python -m bench.peak_memory``, as multiples of one input set's bytes.

Sums the proportional set size of the judge and its children while a /submit runs, so memory that both sides
map counts once. What the idle judge holds already (interpreter, libraries) is taken off.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from bench.judge_process import Judge, grade, judge
from hpcagent_bench import config
from hpcagent_bench.corpus import sizing, spec

EVERY_S = 0.02
KERNELS = ("tsvc_2_s231", "tsvc_2_s311", "fuse_diamond", "heat_3d_jacobi")


@dataclasses.dataclass(frozen=True)
class Peak:
    """Bytes at the peak of a grade beyond the idle judge, and of one input set at the rung."""

    kernel: str
    peak: int
    input_set: int

    @property
    def multiple(self) -> float:
        """Peak over one input set."""
        return self.peak / self.input_set


def tree(pid: int) -> Iterator[int]:
    """A process and everything below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = task.read_text().split()
        except OSError:
            continue
        for child in below:
            yield from tree(int(child))


def held(pid: int) -> int:
    """Proportional set size of a process tree, in bytes."""
    total = 0
    for process in tree(pid):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def peak_of(served: Judge, name: str, sizes: config.Sizes) -> Peak:
    """The second /submit of a kernel, watched."""
    kernel = spec.load(name)
    grade(served, "submit", kernel)
    done = threading.Event()
    seen = [0]

    def watch() -> None:
        while not done.wait(EVERY_S):
            seen.append(held(served.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    grade(served, "submit", kernel)
    done.set()
    watcher.join()
    params = {**kernel.configs[0], **sizing.rung(kernel, sizes)}
    return Peak(name, max(seen), kernel.input_bytes(params))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", type=int, default=256 << 20, help="of one input set (default 256 MiB)")
    parser.add_argument("--kernels", nargs="*", default=list(KERNELS))
    parser.add_argument("--json", action="store_true", help="for scripts")
    options = parser.parse_args()
    sizes = config.Sizes("bench", options.bytes)
    with tempfile.TemporaryDirectory(prefix="hpcagent-memory-") as folder:
        with judge(Path(folder), str(options.bytes), "c") as served:
            idle = held(served.pid)
            found = [peak_of(served, name, sizes) for name in options.kernels]
    found = [dataclasses.replace(p, peak=p.peak - idle) for p in found]
    if options.json:
        print(json.dumps([{**dataclasses.asdict(p), "multiple": p.multiple} for p in found]))
        return
    for peak in found:
        Console().print(
            f"{peak.kernel:32} {peak.peak / 2**20:8.0f} MiB at its peak, {peak.multiple:.2f} x one input set"
        )


if __name__ == "__main__":
    main()
