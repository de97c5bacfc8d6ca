"""The native loops by which a node is timed: built once, run by threads of this process pinned to a core.

They hold no lock of the interpreter, so cores are loaded side by side, each by a thread of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain import flags, tool_cache

CHAIN_STEPS = 1_000_000
"""Dependent steps of one run of the chain: about 2 ms at 3 GHz."""
SWEEP_WORDS = 2**21
"""Words of the block that is swept: 16 MiB, beyond the caches one core has to itself."""
RUNS = 24
"""Runs of one reading; the even ones are one side and the odd ones the other."""

PEAK_WORDS = tuple(2**k for k in (10, 11, 12, 14, 16))
"""Blocks in which the peak is looked for: 8 to 512 KiB, a core's first two caches; memory is slower."""
PEAK_BURSTS = 24

_SOURCE = Path(__file__).resolve().parent / "node_loops.c"
_WORDS = np.ctypeslib.ndpointer(np.uint64, flags="C")
_TIMES = np.ctypeslib.ndpointer(np.int64, flags="C")


@dataclass(frozen=True)
class CoreTimes:
    """One core's runs of the reference, in ns. ``lost`` is the share of wall time the core ran others."""

    core: int
    chain_ns: tuple[int, ...]
    sweep_ns: tuple[int, ...]
    lost: float


@functools.cache
def _library() -> ctypes.CDLL:
    def command(output: Path) -> list[str]:
        return flags.compile_command("c", _SOURCE, output, purpose="runner")

    argv = command(Path("node.so"))
    parts: list[str | bytes] = [
        tool_cache.compiler_version(argv[0]),
        tool_cache.cpu_model(),
        *argv,
        _SOURCE.read_bytes(),
    ]
    path = tool_cache.cached(
        "node-loops", tool_cache.digest(parts), "node.so", lambda side: _build(command(side))
    )
    loaded = ctypes.CDLL(str(path))
    count = ctypes.c_int64
    loaded.node_reference.argtypes = (count, _WORDS, count, count, _TIMES, _TIMES, _TIMES)
    loaded.node_reference.restype = None
    loaded.node_peak.argtypes = (_WORDS, count, count)
    loaded.node_peak.restype = ctypes.c_double
    return loaded


def _build(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except FileNotFoundError:
        raise UserError(f"compiler '{command[0]}' is not on PATH", "apt-get install gcc") from None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr.strip()[-4000:]}")


def time_cores(cores: Sequence[int], runs: int = RUNS) -> tuple[CoreTimes, ...]:
    """Time the reference on all ``cores`` at once; the first also sweeps memory, as one core alone does."""
    found: dict[int, CoreTimes] = {}

    def work(core: int, sweeps: bool) -> None:
        found[core] = _time_core(core, sweeps, runs)

    _side_by_side([functools.partial(work, core, core == cores[0]) for core in cores])
    return tuple(found[core] for core in cores)


def _time_core(core: int, sweeps: bool, runs: int) -> CoreTimes:
    _pin(core)
    words = np.zeros(SWEEP_WORDS if sweeps else 1, np.uint64)
    words += 1  # touched, so that no page is first mapped inside the clock
    chain, sweep, total = np.zeros(runs, np.int64), np.zeros(runs, np.int64), np.zeros(2, np.int64)
    _library().node_reference(CHAIN_STEPS, words, words.size if sweeps else 0, runs, chain, sweep, total)
    wall, cpu = (int(value) for value in total)
    lost = max(0.0, 1.0 - cpu / wall) if wall > 0 else 0.0
    return CoreTimes(core, tuple(chain.tolist()), tuple(sweep.tolist()) if sweeps else (), lost)


@functools.cache
def core_peak_gbps(core: int) -> float:
    """The most GB/s (bytes per ns) one core reads or writes, over blocks of 8 to 512 KiB.

    Measured once in a process, in bursts of tens of microseconds of which the fastest counts: a busy
    neighbour hardly lowers it.
    """
    found: list[float] = []

    def work() -> None:
        _pin(core)
        words = np.ones(max(PEAK_WORDS), np.uint64)
        found.extend(_library().node_peak(words, count, PEAK_BURSTS) for count in PEAK_WORDS)

    _side_by_side([work])
    return max(found)


def _side_by_side(works: Sequence[Callable[[], None]]) -> None:
    """Run each in a thread of its own, whose affinity ends with it; the first error is raised here."""
    _library()  # built before threads need it
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _pin(core: int) -> None:
    """Bind this thread to ``core``; where the core is not granted the scheduler chooses."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {core})
