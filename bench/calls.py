"""Kernels built and called in this process, at a rung, for comparisons of one form with another."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench import config
from hpcagent_bench.corpus import fuzz, sizing
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import abi, flags

Arrays = dict[str, npt.NDArray[Any]]
Params = dict[str, int | float]
LAPTOP = config.Sizes("laptop", 64 << 20)
_BY_VALUE: dict[str, Callable[[Any], Any]] = {"int64": ctypes.c_int64, "float64": ctypes.c_double}


def drawn(kernel: Kernel, sizes: config.Sizes = LAPTOP) -> tuple[Params, Arrays]:
    """Sizes of the rung, and arguments drawn for them as the judge draws."""
    params: Params = {**kernel.configs[0], **sizing.rung(kernel, sizes)}
    dtypes = kernel.dtypes()
    arrays: Arrays = {name: np.empty(shape, dtypes[name]) for name, shape in kernel.shapes(params).items()}
    fuzz.fill(kernel, arrays, params, value_seed=1, structural_seed=2, threads=1)
    return params, arrays


def built(kernel: Kernel, source: Path, library: Path) -> Callable[[Arrays, Mapping[str, Any]], None]:
    """The C source as a callable, compiled as references are."""
    subprocess.run(flags.compile_command("c", source, library, purpose="reference"), check=True)
    entry = getattr(ctypes.CDLL(str(library)), kernel.symbol)
    args = abi.binding(kernel).args

    def call(arrays: Arrays, params: Mapping[str, Any]) -> None:
        scalars = kernel.scalars(params)
        values: list[Any] = [
            arrays[arg.name].ctypes.data_as(ctypes.c_void_p)
            if arg.kind == "ptr"
            else _BY_VALUE[arg.dtype](scalars[arg.name])
            for arg in args
        ]
        entry(*values, None, ctypes.c_int64(0))

    return call


def seconds(
    call: Callable[[Arrays, Mapping[str, Any]], None],
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
