"""References as functions of this process: NumPy as written, compiled ones through ctypes, numba as a module.

All of them are the project's own code, so nothing is sealed; a crash takes the worker process with it, and
the pool says what it was doing.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import abi, flags, languages, tool_cache

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Params = Mapping[str, int | float]
Call = Callable[[Arrays, Params], None]
"""Runs a reference on the arrays in place."""

_CACHE = "kernel-check"
_BUILD_TIMEOUT_S = 300.0
_GUARD = 64  # bytes before and after every array of a guarded call
_PATTERN = 0xA5


class NotBuilt(Exception):
    """A compiler refused a source; the message is the end of what it said."""


def numpy_call(kernel: Kernel) -> Call:
    """The reference as its author wrote it, run by the interpreter."""
    function = kernel.load_numpy()

    def call(arrays: Arrays, params: Params) -> None:
        values = {**kernel.scalars(params), **arrays}
        with np.errstate(all="ignore"):
            function(*(values[name] for name in kernel.arg_order))

    return call


def native_call(
    kernel: Kernel,
    source: str,
    language: str,
    *,
    datatype: str = "float64",
    family: str = "gcc",
    extra: Sequence[str] = (),
) -> Call:
    """A compiled source by the C calling convention; NotBuilt when it does not compile or load."""
    library = build(kernel.symbol, source, language, family=family, extra=extra)
    try:
        entry = getattr(ctypes.CDLL(str(library), os.RTLD_NOW), kernel.symbol)
    except (OSError, AttributeError) as error:
        raise NotBuilt(str(error)) from None
    entry.restype = None
    bound = abi.binding(kernel, datatype)
    scalar_types = {arg.name: np.ctypeslib.as_ctypes_type(np.dtype(arg.dtype)) for arg in bound.scalars}
    entry.argtypes = [
        *(ctypes.c_void_p for _ in bound.pointers),
        *(scalar_types[arg.name] for arg in bound.scalars),
        ctypes.c_void_p,
        ctypes.c_int64,
    ]

    def call(arrays: Arrays, params: Params) -> None:
        scalars = kernel.scalars(params)
        pointers = (arrays[arg.name].ctypes.data for arg in bound.pointers)
        entry(*pointers, *(scalars[arg.name] for arg in bound.scalars), None, 0)

    return call


def build(symbol: str, source: str, language: str, *, family: str = "gcc", extra: Sequence[str] = ()) -> Path:
    """A shared library, built once per source, command, compiler and processor."""
    name = f"{symbol}{languages.get(language).extension}"

    def command(folder: Path) -> list[str]:
        return flags.compile_command(
            language,
            folder / name,
            folder / f"{symbol}.so",
            family=family,
            extra=extra,
            purpose="reference",
        )

    argv = command(Path())
    key = tool_cache.digest([source, tool_cache.compiler_version(argv[0]), tool_cache.cpu_model(), *argv])

    def make(side: Path) -> None:
        folder = side.parent / "work"
        folder.mkdir()
        (folder / name).write_text(source)
        try:
            done = subprocess.run(
                command(folder),
                cwd=folder,  # where Fortran puts its module files
                capture_output=True,
                text=True,
                timeout=_BUILD_TIMEOUT_S,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise NotBuilt(f"compiler '{argv[0]}' is not on PATH") from None
        if done.returncode != 0:
            raise NotBuilt(done.stderr.strip()[-2000:])
        (folder / f"{symbol}.so").replace(side)

    return tool_cache.cached(_CACHE, key, f"{symbol}.so", make)


def numba_call(kernel: Kernel, source: str) -> Call:
    """The numba module's function; what numba compiles is kept beside the module, in the cache."""
    import numba

    key = tool_cache.digest([source, numba.__version__, tool_cache.cpu_model()])

    def write(side: Path) -> None:
        side.write_text(source)

    path = tool_cache.cached(_CACHE, key, f"{kernel.name}_{key[:8]}.py", write)
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None:
        raise NotBuilt(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = module  # numba's cache finds the module again by its name
    found.loader.exec_module(module)
    function = getattr(module, kernel.function)

    def call(arrays: Arrays, params: Params) -> None:
        values = {**kernel.scalars(params), **arrays}
        function(*(values[name] for name in kernel.arg_order))

    return call


def copies(arrays: Mapping[str, Array]) -> Arrays:
    """The same values in buffers of their own."""
    return {name: array.copy() for name, array in arrays.items()}


def guarded_copies(arrays: Mapping[str, Array]) -> tuple[Arrays, Callable[[], str | None]]:
    """Copies with a margin around each, and a function that names an array whose margin was written."""
    views: Arrays = {}
    buffers: dict[str, Array] = {}
    for name, array in arrays.items():
        room = np.empty(array.nbytes + 2 * _GUARD, np.uint8)
        room[:_GUARD] = room[-_GUARD:] = _PATTERN
        view = room[_GUARD : _GUARD + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        views[name], buffers[name] = view, room

    def overrun() -> str | None:
        for name, room in buffers.items():
            if (room[:_GUARD] != _PATTERN).any() or (room[-_GUARD:] != _PATTERN).any():
                return name
        return None

    return views, overrun


def identical(first: Array, second: Array) -> bool:
    """Equal to the bit; compared as integers, which NaN does not disturb."""
    word = np.uint64 if first.nbytes % 8 == 0 else np.uint8
    return np.array_equal(first.reshape(-1).view(word), second.reshape(-1).view(word))
