"""Kernels as functions of this process, by the reference's order of arguments or by the C calling convention.

For the project's own code only: what an agent wrote runs in a sealed child (harness/native_call).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import abi

Arrays = dict[str, npt.NDArray[Any]]
Params = Mapping[str, int | float]
Call = Callable[[Arrays, Params], None]
"""Runs a kernel on C-contiguous arrays in place; sizes and knobs left out take the kernel's defaults."""


def of_function(kernel: Kernel, function: Callable[..., None]) -> Call:
    """A Python function that takes the reference's parameters."""

    def call(arrays: Arrays, params: Params) -> None:
        values = {**kernel.scalars(params), **arrays}
        function(*(values[name] for name in kernel.arg_order))

    return call


def of_module(kernel: Kernel, path: Path, *, register: bool = False) -> Call:
    """The kernel's function in a Python file; ImportError when it cannot be one.

    ``register`` makes the module known by its file's stem, by which numba's cache finds it again; the stem
    must be unique then.
    """
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(found)
    if register:
        sys.modules[path.stem] = module
    found.loader.exec_module(module)
    return of_function(kernel, getattr(module, kernel.function))


def of_library(kernel: Kernel, library: Path, datatype: str = "float64") -> Call:
    """The kernel's symbol in a shared library; OSError or AttributeError when it does not load."""
    entry = getattr(ctypes.CDLL(str(library), os.RTLD_NOW), kernel.symbol)
    entry.restype = None
    bound = abi.binding(kernel, datatype)
    entry.argtypes = [
        *(ctypes.c_void_p for _ in bound.pointers),
        *(np.ctypeslib.as_ctypes_type(np.dtype(arg.dtype)) for arg in bound.scalars),
        ctypes.c_void_p,
        ctypes.c_int64,
    ]

    def call(arrays: Arrays, params: Params) -> None:
        scalars = kernel.scalars(params)
        pointers = (arrays[arg.name].ctypes.data for arg in bound.pointers)
        entry(*pointers, *(scalars[arg.name] for arg in bound.scalars), None, 0)

    return call
