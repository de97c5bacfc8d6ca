"""Calls a function of a Python module once on a draw, for its author to watch; nothing here is graded.

    python driver.py GUARD MODULE DRAW_FD REPORT_FD TASK

TASK is JSON: the function, its arguments by order, arrays as [dtype, shape, offset, writable] by name, and
scalars by name. It stands alone (only NumPy and numba), since inside the seal this project is not to be seen.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import os
import sys
import time
from typing import Any

import numpy as np


def arguments(task: dict[str, Any], draw: int) -> list[Any]:
    """The arguments of the call: private copies of the draw's arrays, inputs read-only."""
    block = mmap.mmap(draw, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    values: dict[str, Any] = {
        name: np.float64(value) if isinstance(value, float) else np.int64(value)
        for name, value in task["scalars"].items()
    }
    for name, (dtype, shape, offset, writable) in task["arrays"].items():
        values[name] = np.ndarray(shape, dtype, buffer=block, offset=offset)
        values[name].flags.writeable = writable
    return [values[name] for name in task["order"]]


def main() -> None:
    """Call once, report ``1 nanoseconds``."""
    guard, module, draw, report, text = sys.argv[1:6]
    task = json.loads(text)
    args = arguments(task, int(draw))
    if ctypes.CDLL(guard).hb_guard_lock() != 0:
        raise SystemExit("this kernel has no system-call filter")
    spec = importlib.util.spec_from_file_location("submission", module)
    if spec is None or spec.loader is None:
        raise SystemExit("the module cannot be loaded")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = loaded
    spec.loader.exec_module(loaded)
    function = getattr(loaded, task["function"])
    start = time.perf_counter_ns()
    function(*args)
    spent = time.perf_counter_ns() - start
    sys.stdout.flush()
    os.write(int(report), f"1 {spent}\n".encode())


if __name__ == "__main__":
    main()
