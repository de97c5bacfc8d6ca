"""References as functions of this process: NumPy as written, compiled ones through ctypes, numba as a module.

All of them are the project's own code, so nothing is sealed; a crash takes the worker process with it, and
the pool says what it was doing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.toolchain import flags, in_process, languages, tool_cache
from hpcagent_bench.toolchain.in_process import Arrays, Call, Params

Array = npt.NDArray[Any]

_CACHE = "kernel-check"
_BUILD_TIMEOUT_S = 300.0
_GUARD = 64  # bytes before and after every array of a guarded call
_PATTERN = 0xA5


class NotBuilt(Exception):
    """A compiler refused a source; the message is the end of what it said."""


def numpy_call(kernel: Kernel) -> Call:
    """The reference as its author wrote it, run by the interpreter."""
    plain = in_process.of_function(kernel, kernel.load_numpy())

    def call(arrays: Arrays, params: Params) -> None:
        with np.errstate(all="ignore"):
            plain(arrays, params)

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
        return in_process.of_library(kernel, library, datatype)
    except (OSError, AttributeError) as error:
        raise NotBuilt(str(error)) from None


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
    try:
        return in_process.of_module(kernel, path, register=True)
    except ImportError as error:
        raise NotBuilt(str(error)) from None


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
