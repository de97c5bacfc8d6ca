"""The native helpers of draws and comparison: one C library, built on first use and called through ctypes.

Calls release the interpreter's lock and use as many threads as they are told; the threads end with the call,
so nothing of the judge spins beside a timed section. A build is cached under ``paths.cache_root()`` by
source, command, compiler version and processor, and appears there by renaming, so two processes may build at
once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
from pathlib import Path

from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain import flags, tool_cache

_SOURCE_FOLDER = Path(__file__).resolve().parent / "native"
_BUILD_TIMEOUT_S = 120.0


class CompareResult(ctypes.Structure):
    """What one comparison pass found (``compare_result`` of native/compare.c)."""

    _fields_ = (
        ("bad", ctypes.c_int64),
        ("first_bad", ctypes.c_int64),
        ("max_abs", ctypes.c_double),
        ("max_rel", ctypes.c_double),
        ("norm", ctypes.c_double),
    )
    bad: int
    first_bad: int
    max_abs: float
    max_rel: float
    norm: float


COMPARE_KINDS = ("f64", "f32", "t16", "t8", "c128", "c64", "b64", "b32", "b16", "b8")
"""Element kinds of ``compare_arrays``, in the order of native/compare.c."""

_POINTER, _COUNT, _KEY, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_int
_REAL = ctypes.c_double
_UNIFORM = (None, (_POINTER, _COUNT, _KEY, _REAL, _REAL, _INT, _INT))
_INTEGERS = (None, (_POINTER, _COUNT, _KEY, ctypes.c_int64, ctypes.c_uint64, _INT))
_NORMAL = (None, (_POINTER, _COUNT, _KEY, _INT, _REAL, _REAL, _REAL, _REAL, _INT, _INT))
_OFFSETS = (_INT, (_POINTER, _COUNT, _KEY, ctypes.c_int64, ctypes.c_int64, _INT))
_PERMUTATION = (_INT, (_POINTER, _COUNT, _KEY, _INT))
_COMPARE = (
    None,
    (_INT, _POINTER, _POINTER, _COUNT, _REAL, _REAL, _POINTER, _INT, ctypes.POINTER(CompareResult)),
)
_SIGNATURES = {
    "draw_uniform_f64": _UNIFORM,
    "draw_uniform_f32": _UNIFORM,
    "draw_normal_f64": _NORMAL,
    "draw_normal_f32": _NORMAL,
    "narrow_f32": (None, (_POINTER, _POINTER, _COUNT, _INT, _INT, _INT, _INT)),
    **{f"draw_integers_i{bits}": _INTEGERS for bits in (64, 32, 16, 8)},
    "draw_offsets_i64": _OFFSETS,
    "draw_offsets_i32": _OFFSETS,
    "draw_permutation_i64": _PERMUTATION,
    "draw_permutation_i32": _PERMUTATION,
    "compare_arrays": _COMPARE,
}


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded helpers. A missing compiler is a UserError, a failed build a RuntimeError with its log."""
    loaded = ctypes.CDLL(str(_built()))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def _built() -> Path:
    """The shared library for this source, compiler and processor, compiled unless it is cached."""

    def command(output: Path) -> list[str]:
        return flags.compile_command("c", _SOURCE_FOLDER / "helpers.c", output, purpose="runner")

    argv = command(Path("helpers.so"))
    sources = [
        part for path in sorted(_SOURCE_FOLDER.glob("*.[ch]")) for part in (path.name, path.read_bytes())
    ]
    key = tool_cache.digest([tool_cache.compiler_version(argv[0]), tool_cache.cpu_model(), *argv, *sources])
    return tool_cache.cached("corpus-native", key, "helpers.so", lambda side: _run(command(side)))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise UserError(f"compiler '{command[0]}' is not on PATH", "apt-get install gcc") from None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr.strip()[-4000:]}")
