"""The Python runner: calls one function as told over a control socket (frames: harness/messages.py).

    python python_runner.py CONTROL_FD GUARD MODULE_FILE FUNCTION ARG,ARG,... trusted|untrusted STRICT

It stands alone (only NumPy and numba), since inside the seal this project is not to be seen. The system-call
filter is in place before any line of the module runs; STRICT 1 makes a missing filter fatal.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import mmap
import os
import re
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HELLO, LOAD, READY, GO, DONE, FAIL = range(1, 7)
NEW_OUTPUTS, NEW_DRAW = 1, 2
IN_OUTPUTS = 1
FRAME_MAX = 1 << 16
LOAD_HEAD = struct.Struct("=IIIIQQQQ")
GO_FRAME = struct.Struct("=IIQ")
DONE_FRAME = struct.Struct("=IIQQQ")
CALIBRATIONS = 1000
PRODUCTS = re.compile(rb"dot|linalg|matmul|scipy|\w[ )\]]*@")
SKEW_NS, SKEW_SHARE = 50_000, 1000
CLOCK_SKEWED = 32
"""Beside the changed modes: the process' own clock fell behind the kernel's."""


class Runner:
    """One function, its current draw and its output buffers."""

    def __init__(self, control: socket.socket, guard: ctypes.CDLL, arg_order: list[str]) -> None:
        self.control = control
        self.restore_modes: Callable[[], int] = guard.hb_guard_modes
        guard.hb_guard_ns.restype = ctypes.c_uint64
        self.kernel_ns: Callable[[], int] = guard.hb_guard_ns
        self.arg_order = arg_order
        self.clock = time.clock_gettime_ns  # before the module could put another in its place
        self.overhead_ns = self.calibrate()
        self.function: Any = None
        self.outputs: mmap.mmap | None = None
        self.draw: mmap.mmap | None = None
        self.args: list[Any] = []
        self.signatures: set[tuple[Any, ...]] = set()

    def load(self, first: Callable[[], None] | None) -> None:
        """Map what is new, load the module by ``first`` if still to do, compile for the arguments' types."""
        frame, fds, _, _ = socket.recv_fds(self.control, FRAME_MAX, 2)
        if not frame:
            os._exit(0)
        kind, _, _, fresh, _, _, _, _ = LOAD_HEAD.unpack_from(frame)
        if kind != LOAD:
            raise RuntimeError("protocol: not a load frame")
        told = json.loads(frame[LOAD_HEAD.size :])
        self.args = []
        if fresh & NEW_DRAW:
            self.draw = self.map(fds.pop(0), mmap.PROT_READ)
        if fresh & NEW_OUTPUTS:
            self.outputs = self.map(fds.pop(0), mmap.PROT_READ | mmap.PROT_WRITE)
        values: dict[str, Any] = {
            name: np.float64(v) if isinstance(v, float) else np.int64(v)
            for name, v in told["scalars"].items()
        }
        for name, (dtype, shape, where, offset) in told["arrays"].items():
            block = self.outputs if where == IN_OUTPUTS else self.draw
            values[name] = np.ndarray(shape, dtype, buffer=block, offset=offset)
        self.args = [values[name] for name in self.arg_order]
        if first is not None:
            first()
        self.compile()

    @staticmethod
    def map(fd: int, protection: int) -> mmap.mmap:
        """All of a memfd, its pages in the page table now rather than in a call."""
        size = os.fstat(fd).st_size
        mapped = mmap.mmap(fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, protection)
        os.close(fd)
        return mapped

    def compile(self) -> None:
        """Compile a numba function outside the clock. Read-only arrays are their own numba types."""
        numba: Any = sys.modules.get("numba")
        if numba is not None and isinstance(self.function, numba.core.dispatcher.Dispatcher):
            signature = tuple(numba.typeof(arg) for arg in self.args)
            if signature not in self.signatures:
                self.function.compile(signature)
                self.signatures.add(signature)

    def calibrate(self) -> int:
        """What the clocks and a call take: the least that calling an empty function was seen to take."""
        clock = self.clock

        def nothing(*_: Any) -> None:
            return

        least = 1 << 62
        for _ in range(CALIBRATIONS):
            start = clock(time.CLOCK_MONOTONIC)
            nothing(self)
            least = min(least, clock(time.CLOCK_MONOTONIC) - start)
        return least

    def run(self) -> None:
        """Wait for GO, call, answer with the clocks' readings. What the function returns is dropped."""
        function: Callable[..., Any] = self.function
        args = self.args
        clock, wall, used = self.clock, time.CLOCK_MONOTONIC, time.CLOCK_PROCESS_CPUTIME_ID
        send, restore, kernel_ns = self.control.send, self.restore_modes, self.kernel_ns
        frame = self.control.recv(FRAME_MAX)
        if not frame:
            os._exit(0)
        kind, _, nonce = GO_FRAME.unpack(frame)
        if kind != GO:
            raise RuntimeError("protocol: not a go frame")
        cpu = clock(used)
        clock(wall)
        outer = kernel_ns()
        start = clock(wall)
        function(*args)
        inside = clock(wall) - start
        whole = kernel_ns() - outer
        cpu = clock(used) - cpu
        changed = restore()
        if whole > inside + inside // SKEW_SHARE + SKEW_NS:
            inside, changed = whole, changed | CLOCK_SKEWED
        send(DONE_FRAME.pack(DONE, changed, nonce, max(1, inside - self.overhead_ns), cpu))


def load_module(name: str, path: str) -> ModuleType:
    """Execute a module file. It must be importable by name: what numba cached on disk refers to it so."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prepare_numba(*, scipy: bool) -> None:
    """Import numba and what it imports at its first compilation, while the judge draws inputs.

    numba asks SciPy for matrix products; importing that takes a quarter of the whole start.
    """
    if not scipy:
        sys.modules["scipy"] = None  # type: ignore[assignment]
    registry: Any = importlib.import_module("numba.core.registry")
    registry.cpu_target.typing_context.refresh()
    registry.cpu_target.target_context.refresh()
    if not scipy:
        del sys.modules["scipy"]


def lock(guard: ctypes.CDLL, module: str, *, trusted: bool, strict: bool) -> None:
    """Install the filter. Importing numba asks the system what the filter refuses, so it comes first."""
    text = Path(module).read_bytes()
    if re.search(rb"\bnumba\b", text):
        prepare_numba(scipy=not trusted or PRODUCTS.search(text) is not None)
    missing = guard.hb_guard_lock()
    if missing and strict:
        raise OSError(missing, "this kernel has no system-call filter")


def serve(control: socket.socket, argv: list[str]) -> None:
    """Answer load and go frames until the judge closes the socket. The module is loaded with the first draw.

    A trusted module is loaded at once, so that its compiler starts while the judge draws inputs.
    """
    guard, path, name, order, trust, strict = argv
    helper = ctypes.CDLL(guard)
    runner = Runner(control, helper, order.split(",") if order else [])
    lock(helper, path, trusted=trust == "trusted", strict=strict == "1")
    os.dup2(1, 2)
    gc.disable()
    modes = 0

    def open_module() -> None:
        nonlocal modes
        runner.function = getattr(load_module(f"{trust}_{name}", path), name)
        gc.freeze()
        modes = helper.hb_guard_modes()

    if trust == "trusted":
        open_module()
    control.send(struct.pack("=II", HELLO, 0))
    while True:
        runner.load(None if runner.function else open_module)
        control.send(struct.pack("=II", READY, modes))
        runner.run()


def describe(error: BaseException, module: str) -> str:
    """An exception in one line, with the line of the module it came through last."""
    lines = [n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == module]
    if isinstance(error, SyntaxError) and error.filename == module:
        return f"SyntaxError: {error.msg} (line {error.lineno})"
    return f"{type(error).__name__}: {error}" + (f" (line {lines[-1]})" if lines else "")


def main(argv: list[str]) -> int:
    """Serve calls; whatever goes wrong in Python is told in one FAIL frame."""
    given = socket.socket(fileno=int(argv[1]))
    control = socket.socket(
        fileno=os.dup(given.fileno())
    )  # the first free number: says nothing of the judge's
    given.close()
    try:
        serve(control, argv[2:])
    except BaseException as error:
        text = describe(error, argv[3])
        control.send(struct.pack("=II", FAIL, 0) + text.encode(errors="replace")[:1000])
        os._exit(3)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
