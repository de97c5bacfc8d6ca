"""Calls of one side on one draw after another, in a process of its own.

A call has two steps. *Load* hands the sealed draw over, with the first values of the output buffers written,
and zeroes the workspace; *go* starts the clocks. Between calls the child stands still, so nothing is computed
unclocked and its outputs are read where they lie. Every way a child can go wrong comes back as an Outcome.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np

from hpcagent_bench.harness import messages
from hpcagent_bench.harness.child_process import START_TIMEOUT_S, ChildProcess, Ended, Late
from hpcagent_bench.harness.memory import Draw, Layout, Outputs, Pool, Start, layout_for

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

__all__ = ["Child", "Draw", "Layout", "Outcome", "layout_for"]

LOAD_TIMEOUT_S = 60.0
"""Longest time for handing a draw over; the first includes opening the library."""
COMPILE_TIMEOUT_S = 600.0
"""The same where handing over compiles a reference of the judge's own."""
IDLE_CPU_NS = 1_000_000
IDLE_CPU_NS_PER_THREAD = 100_000
"""CPU time helper threads may use while a draw is handed over, outside the clock: falling asleep again."""


@dataclass(frozen=True)
class Outcome:
    """One call as measured. Times are nanoseconds; all are 0 unless ``status`` is ok.

    ``inside_ns`` is read by the child around the call alone, ``outside_ns`` by the judge around the exchange,
    and ``cpu_ns`` is CPU time of all the child's threads from GO until they stood, read by the judge.
    ``detail`` of a failure is one line. It starts with ``seal:`` when the child failed before any code of a
    submission was loaded and with ``memory:`` when the judge had none left: neither is the submission's
    fault, and no submission can bring these words about.
    """

    status: Literal["ok", "crash", "timeout", "refused"]
    inside_ns: int = 0
    outside_ns: int = 0
    cpu_ns: int = 0
    detail: str = ""
    late_cpu_ns: int = 0
    fp_modes: str = ""
    overrun: str = ""


class Loader(Protocol):
    """Encodes a load frame for one kind of runner."""

    def __call__(
        self,
        binding: Binding,
        layout: Layout,
        outputs: Layout,
        scalars: Mapping[str, int | float],
        *,
        fresh: int,
        workspace_bytes: int,
    ) -> bytes: ...


class Child:
    """One process of one side, made by ``native`` or ``numba``; it starts while its maker goes on."""

    def __init__(
        self,
        process: ChildProcess,
        binding: Binding,
        encode: Loader,
        *,
        pool: Pool | None = None,
        trusted: bool = False,
    ) -> None:
        self._process = process
        self._binding = binding
        self._encode = encode
        self._trusted = trusted
        self._greeted = False
        self._loaded = False
        self._pool = pool
        self._draw_serial = 0
        self._outputs: Outputs | None = None
        self._retired: list[Outputs] = []
        self._failed: Outcome | None = None

    @classmethod
    def native(
        cls,
        library: Path,
        binding: Binding,
        *,
        cores: Sequence[int],
        memory_bytes: int | None,
        stack_mb: int,
        sealed: bool = True,
        pool: Pool | None = None,
        sanitized: bool = False,
    ) -> Child:
        """A child that calls ``binding.symbol`` of the shared library ``library``.

        ``memory_bytes`` bounds what it allocates beside thread stacks (``stack_mb`` MiB each) and arrays.
        """
        from hpcagent_bench.harness.runner import start

        process = start.native(
            library, binding, cores=cores, memory_bytes=memory_bytes, stack_mb=stack_mb, sealed=sealed
        )
        return cls(process, binding, messages.load, pool=pool)

    @classmethod
    def numba(
        cls,
        source: str,
        function: str,
        arg_order: Sequence[str],
        binding: Binding,
        *,
        cores: Sequence[int],
        sealed: bool = True,
        pool: Pool | None = None,
    ) -> Child:
        """A child that calls the numba function ``function`` of the trusted module text ``source``.

        It takes arrays and scalars by ``arg_order``; it is compiled while the first draw is loaded.
        """
        from hpcagent_bench.harness.runner import start

        process = start.numba(source, function, arg_order, cores=cores, sealed=sealed)
        return cls(process, binding, messages.load_json, pool=pool, trusted=True)

    @classmethod
    def python(
        cls,
        module: Path,
        function: str,
        arg_order: Sequence[str],
        binding: Binding,
        *,
        cores: Sequence[int],
        memory_bytes: int | None,
        stack_mb: int,
        sealed: bool = True,
        pool: Pool | None = None,
    ) -> Child:
        """A child that calls ``function`` of the untrusted Python module file ``module``."""
        raise NotImplementedError

    def sanitizer_notes(self) -> str:
        """Head of what the undefined-behaviour sanitizer said so far, empty when nothing."""
        return ""

    @property
    def pid(self) -> int:
        """The child's process number on this host."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child can take another call."""
        return self._failed is None and not self._process.ended

    def await_ready(self) -> None:
        """Wait until the child stands ready for its first call; if it never does, the call will say so."""
        with contextlib.suppress(Ended, Late, OSError):
            self._greet()

    def mapped_files(self) -> frozenset[str]:
        """Names of the files and libraries in the child's memory; empty once it is gone."""
        try:
            lines = Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        except OSError:
            return frozenset()
        return frozenset(Path(line.split(maxsplit=5)[5]).name for line in lines if "/" in line)

    @property
    def outputs(self) -> dict[str, np.ndarray]:
        """Read-only views of the last call's outputs, valid until the next call."""
        return {} if self._outputs is None else self._outputs.arrays

    def call(
        self, draw: Draw, scalars: Mapping[str, int | float], *, timeout_s: float, workspace_bytes: int = 0
    ) -> Outcome:
        """Call the kernel once on ``draw``; ``timeout_s`` bounds the call alone. A failure ends the child."""
        if self._failed is not None:
            return self._failed
        step, prefix = "start", "seal: "
        try:
            self._greet()
            step, prefix = "load", ""
            self._load(draw, scalars, workspace_bytes)
            step = "call"
            return self._go(timeout_s)
        except Ended as gone:
            status: Literal["crash", "refused"] = "refused" if step == "start" else "crash"
            return self._fail(status, f"{prefix}{gone} ({step})")
        except Late as late:
            return self._fail("refused" if step == "start" else "timeout", f"{prefix}{late} ({step})")
        except _Refused as refused:
            return self._fail("refused", str(refused))
        except OSError as error:
            return self._fail("refused", f"memory: {error} ({step})")

    def _fail(self, status: Literal["crash", "timeout", "refused"], detail: str) -> Outcome:
        self._process.kill()
        self._failed = Outcome(status, detail=" ".join(detail.split()))
        return self._failed

    def _greet(self) -> None:
        """Wait for the child's first word, which comes before any code of a submission is loaded."""
        if self._greeted:
            return
        frame = self._process.receive(START_TIMEOUT_S)
        if messages.kind(frame) != messages.HELLO:
            raise Ended(messages.fail_text(frame))
        if not self._process.pid:
            raise Ended("the child's process number is unknown")
        self._greeted = True

    def _load(self, draw: Draw, scalars: Mapping[str, int | float], workspace_bytes: int) -> None:
        """Hand the draw over and wait until the child is ready.

        Helper threads must rest meanwhile, but for the first draw: libraries start theirs when opened, and
        the first call is the warm-up.
        """
        draw.seal()
        start = draw.start(messages.output_names(self._binding))
        fresh, descriptors = self._memory(draw, start)
        frame = self._encode(
            self._binding, draw.layout, start.layout, scalars, fresh=fresh, workspace_bytes=workspace_bytes
        )
        watched = self._loaded and not self._trusted
        before = self._process.background_cpu_ns() if watched else 0
        self._process.thaw()
        self._process.send(frame, descriptors)
        answer = self._process.receive(COMPILE_TIMEOUT_S if self._trusted else LOAD_TIMEOUT_S)
        if messages.kind(answer) == messages.FAIL:
            raise _Refused(_said(answer))
        if messages.kind(answer) != messages.READY:
            raise _Refused(f"protocol: frame {messages.kind(answer)} where {messages.READY} was due")
        if watched and self._worked_since(before):
            raise _Refused("protocol: computed outside the clocked call")
        self._loaded = True
        if self._trusted:
            self._release()

    def _memory(self, draw: Draw, start: Start) -> tuple[int, list[int]]:
        """Begin the outputs; say which memory the child has not mapped yet, as flags and descriptors."""
        fresh, descriptors = 0, []
        if self._draw_serial != draw.block.serial:
            fresh |= messages.NEW_DRAW
            descriptors.append(draw.fd)
            self._draw_serial = draw.block.serial
        if self._outputs is None or self._outputs.layout != start.layout:
            # the old buffers stay out of the pool until the child that still maps them is gone
            if self._outputs is not None:
                self._retired.append(self._outputs)
            self._outputs = Outputs(start.layout, self._pool)
            fresh |= messages.NEW_OUTPUTS
            descriptors.append(self._outputs.fd)
        self._outputs.begin(start)
        return fresh, descriptors

    def _worked_since(self, before: int) -> bool:
        """Whether helper threads used CPU time while loading; the kernel's counters may lag a tick behind."""
        allowed = before + IDLE_CPU_NS + IDLE_CPU_NS_PER_THREAD * self._process.threads()
        if self._process.background_cpu_ns() <= allowed:
            return False
        time.sleep(0.01)
        return self._process.background_cpu_ns() > allowed

    def _go(self, timeout_s: float) -> Outcome:
        """Start the call, stamp it from outside, stop the child."""
        process = self._process
        nonce = secrets.randbits(64)
        frame = messages.go(nonce)
        if process.waiting() is not None:
            raise _Refused("protocol: spoke before the call began")
        cpu = process.cpu_ns()
        start = time.perf_counter_ns()
        process.send(frame)
        answer = process.receive(timeout_s)
        outside = time.perf_counter_ns() - start
        process.freeze()
        cpu = process.cpu_ns() - cpu
        done = messages.done(answer)
        if done is None and messages.kind(answer) == messages.FAIL:
            return self._fail("crash", _said(answer))
        if done is None or done[0] != nonce or process.waiting():
            raise _Refused("protocol: a forged or repeated answer")
        if done[1] > outside:
            raise _Refused(f"protocol: says {done[1]} ns of a call that took {outside} ns")
        return Outcome("ok", inside_ns=done[1], outside_ns=outside, cpu_ns=max(cpu, 0))

    def close(self) -> None:
        """End the process and give all memory and descriptors back. May be called again."""
        self._process.close()
        if self._outputs is not None:
            self._retired.append(self._outputs)
            self._outputs = None
        self._release()
        if self._failed is None:
            self._failed = Outcome("crash", detail="the child was closed")

    def _release(self) -> None:
        """Give back buffers that the child has unmapped: a trusted one says so, another must have ended."""
        for outputs in self._retired:
            outputs.close()
        self._retired.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _said(frame: bytes) -> str:
    """A child's own reason, which it may have made up: it cannot claim that the judge failed."""
    text = messages.fail_text(frame)
    return f"child: {text}" if text.startswith(("seal:", "memory:")) else text or "failed without a reason"


class _Refused(Exception):
    """The child broke the protocol or could not start."""
