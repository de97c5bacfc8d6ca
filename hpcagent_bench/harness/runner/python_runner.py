"""The Python runner: calls one numba function as told over a control socket (frames: harness/messages.py).

    python python_runner.py CONTROL_FD MODULE_FILE FUNCTION ARG,ARG,...

It stands alone (only NumPy and numba), since inside the seal this project is not to be seen.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import mmap
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

HELLO, LOAD, READY, GO, DONE, FAIL = range(1, 7)
NEW_OUTPUTS, NEW_DRAW = 1, 2
IN_OUTPUTS = 1
FRAME_MAX = 1 << 16
LOAD_HEAD = struct.Struct("=IIIIQQQ")


class Runner:
    """One function, its current draw and its output buffers."""

    def __init__(self, control: socket.socket, function: Any, arg_order: list[str]) -> None:
        self.control = control
        self.function = function
        self.arg_order = arg_order
        self.outputs: mmap.mmap | None = None
        self.draw: mmap.mmap | None = None
        self.args: list[Any] = []
        self.signatures: set[tuple[Any, ...]] = set()

    def load(self) -> None:
        """Map what is new, find the arguments in it, compile for their types."""
        frame, fds, _, _ = socket.recv_fds(self.control, FRAME_MAX, 2)
        if not frame:
            os._exit(0)
        kind, _, _, fresh, _, _, _ = LOAD_HEAD.unpack_from(frame)
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
        self.compile()

    @staticmethod
    def map(fd: int, protection: int) -> mmap.mmap:
        """All of a memfd, its pages in the page table now rather than in a call."""
        size = os.fstat(fd).st_size
        mapped = mmap.mmap(fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, protection)
        os.close(fd)
        return mapped

    def compile(self) -> None:
        """Compile outside the clock. Read-only arrays are their own numba types."""
        import numba

        if hasattr(self.function, "compile"):
            typeof: Callable[[Any], Any] = numba.typeof
            signature = tuple(typeof(arg) for arg in self.args)
            if signature not in self.signatures:
                self.function.compile(signature)
                self.signatures.add(signature)

    def run(self) -> None:
        """Wait for GO, call, answer with the clocks' readings."""
        function: Callable[..., Any] = self.function
        args = self.args
        clock = time.clock_gettime_ns
        frame = self.control.recv(FRAME_MAX)
        if not frame:
            os._exit(0)
        kind, _, nonce = struct.unpack("=IIQ", frame)
        if kind != GO:
            raise RuntimeError("protocol: not a go frame")
        cpu = clock(time.CLOCK_PROCESS_CPUTIME_ID)
        start = clock(time.CLOCK_MONOTONIC)
        function(*args)
        stop = clock(time.CLOCK_MONOTONIC)
        cpu = clock(time.CLOCK_PROCESS_CPUTIME_ID) - cpu
        self.control.send(struct.pack("=IIQQQ", DONE, 0, nonce, stop - start, cpu))


def load_module(name: str, path: str) -> ModuleType:
    """Execute a module file. It must be importable by name: what numba cached on disk refers to it so."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(argv: list[str]) -> int:
    """Serve calls until the judge closes the socket."""
    control = socket.socket(fileno=int(argv[1]))
    try:
        module = load_module(f"reference_{argv[3]}", argv[2])
        runner = Runner(control, getattr(module, argv[3]), argv[4].split(",") if argv[4] else [])
        os.dup2(1, 2)
        gc.collect()
        gc.freeze()
        gc.disable()
        control.send(struct.pack("=II", HELLO, 0))
        while True:
            runner.load()
            control.send(struct.pack("=II", READY, 0))
            runner.run()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        control.send(struct.pack("=II", FAIL, 0) + text.encode()[:1000])
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv))
