"""The parallel numba reference on two threads against one: ``python -m bench.numba_threads``.

Kernels of different kinds, or those named, at the laptop rung. Calls on one thread and on two take turns in
one process, and the fastest of each count: a ratio above 1 is what the second thread gains.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numba
from rich.console import Console
from rich.table import Table

from bench.calls import Ratio, drawn, seconds, table
from hpcagent_bench.corpus import spec
from hpcagent_bench.toolchain import in_process
from hpcagent_bench.translators import emit

KERNELS = (
    *("tsvc_2_vtvtv", "tsvc_2_vag", "rim_peeled_stencil", "row_variance_two_pass", "tsvc_2_s115"),
    *("gemm", "heat_3d_jacobi", "csr_spmv", "fft_batch", "dct_2d"),
)


def compare(name: str, turns: int, folder: Path) -> Ratio:
    """Time one kernel's numba reference on one thread and on two in turns."""
    kernel = spec.load(name)
    path = folder / f"{name}_numba.py"
    path.write_text(emit(kernel, "numba"))
    call = in_process.of_module(kernel, path)
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
    quarters = statistics.quantiles([one / two for one, two in taken], n=4)
    one, two = (min(column) for column in zip(*taken, strict=True))
    return Ratio(name, one * 1e3, one / two, quarters[0], quarters[2])


def report(gains: list[Ratio]) -> Table:
    made = table("parallel numba references: one thread over two, laptop rung", "one thread ms", gains, 2)
    made.add_row("median", "", f"{statistics.median(gain.ratio for gain in gains):.2f}", "")
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="parallel numba references on two threads against one")
    parser.add_argument("kernels", nargs="*", metavar="kernel")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    if numba.get_num_threads() < 2:
        parser.error("numba may use one thread only on this machine")
    with tempfile.TemporaryDirectory(prefix="hpcagent-numba-") as folder:
        gains = [compare(name, arguments.turns, Path(folder)) for name in arguments.kernels or KERNELS]
    Console().print(report(gains))


if __name__ == "__main__":
    main()
