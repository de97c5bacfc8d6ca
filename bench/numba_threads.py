"""The parallel numba reference on two threads against one: ``python -m bench.numba_threads``.

Kernels of different kinds, or those named, at the laptop rung. Calls on one thread and
on two take turns in one process; a ratio above 1 is what the second thread gains.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
from rich.console import Console
from rich.table import Table

from bench.calls import Arrays, drawn, seconds
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import emit

KERNELS = (
    *("tsvc_2_vtvtv", "tsvc_2_vag", "rim_peeled_stencil", "row_variance_two_pass", "tsvc_2_s115"),
    *("gemm", "heat_3d_jacobi", "csr_spmv", "fft_batch", "dct_2d"),
)


@dataclass(frozen=True)
class Gain:
    """Milliseconds on one thread, and that time over the time on two: median, and the middle half."""

    kernel: str
    one_ms: float
    ratio: float
    low: float
    high: float


def compare(name: str, turns: int, folder: Path) -> Gain:
    """Time one kernel's numba reference on one thread and on two in turns."""
    kernel = spec.load(name)
    function = _loaded(kernel, folder / f"{name}_numba.py")

    def call(arrays: Arrays, params: Mapping[str, Any]) -> None:
        values = {**kernel.scalars(params), **arrays}
        function(*(values[argument] for argument in kernel.arg_order))

    params, before = drawn(kernel)
    work = {array: values.copy() for array, values in before.items()}
    seconds(call, kernel, before, work, params)  # compiles
    taken: list[tuple[float, float]] = []
    for turn in range(turns):
        both = {}
        for threads in (1, 2) if turn % 2 == 0 else (2, 1):
            numba.set_num_threads(threads)
            both[threads] = seconds(call, kernel, before, work, params, time.perf_counter)
        taken.append((both[1], both[2]))
    ratios = sorted(one / two for one, two in taken)
    quarters = statistics.quantiles(ratios, n=4)
    one_ms = statistics.median(one for one, _ in taken) * 1e3
    return Gain(name, one_ms, statistics.median(ratios), quarters[0], quarters[2])


def _loaded(kernel: Kernel, path: Path) -> Any:
    path.write_text(emit(kernel, "numba"))
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return getattr(module, kernel.function)


def report(gains: list[Gain]) -> Table:
    table = Table(title="parallel numba references: one thread over two, laptop rung")
    for column in ("kernel", "one thread ms", "ratio", "middle half"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for gain in gains:
        middle = f"{gain.low:.2f} to {gain.high:.2f}"
        table.add_row(gain.kernel, f"{gain.one_ms:.1f}", f"{gain.ratio:.2f}", middle)
    table.add_section()
    table.add_row("median", "", f"{statistics.median(gain.ratio for gain in gains):.2f}", "")
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="parallel numba references on two threads against one")
    parser.add_argument("kernels", nargs="*", metavar="kernel")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if numba.get_num_threads() < 2:
        parser.error("numba may use one thread only on this machine")
    with tempfile.TemporaryDirectory(prefix="hpcagent-numba-") as folder:
        gains = [compare(name, arguments.turns, Path(folder)) for name in arguments.kernels or KERNELS]
    Console().print(report(gains))


if __name__ == "__main__":
    main()
