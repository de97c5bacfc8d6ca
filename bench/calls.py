"""Kernels built and called in this process, at a rung, for comparisons of one form with another."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from hpcagent_bench import config
from hpcagent_bench.corpus import fuzz, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import flags, in_process
from hpcagent_bench.toolchain.in_process import Arrays, Call, Params

LAPTOP = config.Sizes("laptop", 64 << 20)


def drawn(kernel: Kernel, sizes: config.Sizes = LAPTOP) -> tuple[Params, Arrays]:
    """Sizes of the rung, and arguments drawn for them as the judge draws."""
    params = {**kernel.configs[0], **sizing.rung(kernel, sizes)}
    return params, fuzz.drawn(kernel, params, value_seed=1, structural_seed=2)


def built(kernel: Kernel, source: Path, library: Path) -> Call:
    """The C source as a callable, compiled as references are."""
    subprocess.run(flags.compile_command("c", source, library, purpose="reference"), check=True)
    return in_process.of_library(kernel, library)


def seconds(
    call: Call,
    kernel: Kernel,
    before: Arrays,
    work: Arrays,
    params: Params,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """One call on fresh copies of what the kernel writes; the clock is this thread's CPU time by default."""
    for name in kernel.outputs:
        np.copyto(work[name], before[name])
    start = clock()
    call(work, params)
    return clock() - start


@dataclass(frozen=True)
class Ratio:
    """A kernel's milliseconds in the form compared with, the ratio, and the middle half of those seen."""

    kernel: str
    base_ms: float
    ratio: float
    low: float
    high: float


def median_ratio(kernel: str, base: Sequence[float], ratios: Sequence[float]) -> Ratio:
    """The medians over turns; ``base`` in seconds."""
    quarters = statistics.quantiles(ratios, n=4)
    return Ratio(kernel, statistics.median(base) * 1e3, statistics.median(ratios), quarters[0], quarters[2])


def table(title: str, base: str, found: Sequence[Ratio], digits: int) -> Table:
    """One row a kernel; ``base`` heads the column of milliseconds."""
    made = Table(title=title)
    for column in ("kernel", base, "ratio", "middle half"):
        made.add_column(column, justify="left" if column == "kernel" else "right")
    for row in found:
        middle = f"{row.low:.2f} to {row.high:.2f}"
        made.add_row(row.kernel, f"{row.base_ms:.1f}", f"{row.ratio:.{digits}f}", middle)
    made.add_section()
    return made
