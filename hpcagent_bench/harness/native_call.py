"""Calls of one side on one draw after another, in a process of its own.

A call has two steps. *Load* hands the sealed draw over, with the first values of the output buffers written,
and a zeroed workspace; *go* starts the clocks. Between calls the child stands still, so nothing is computed
unclocked and its outputs are read where they lie. Every way a child can go wrong comes back as an Outcome.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np

from hpcagent_bench.harness import messages
from hpcagent_bench.harness.blocks import Pool
from hpcagent_bench.harness.child_process import START_TIMEOUT_S, ChildProcess, Ended, Late, Over, Unstoppable
from hpcagent_bench.harness.memory import Draw, Layout, Outputs, Start, layout_for
from hpcagent_bench.harness.runner import proc, sanitizer_report
from hpcagent_bench.harness.runner.outcome import JUDGE_SIDE, Outcome, modes_changed
from hpcagent_bench.harness.runner.watch import Refused, Watch

if TYPE_CHECKING:
    from hpcagent_bench.toolchain.abi import Binding

__all__ = ["Child", "Draw", "Layout", "Outcome", "layout_for"]

LOAD_TIMEOUT_S = 60.0
"""Longest time for handing a draw over; the first includes opening the library."""
COMPILE_TIMEOUT_S = 600.0
"""The same where handing over may compile Python."""


class Loader(Protocol):
    """Encodes a load frame for one kind of runner."""

    def __call__(
        self,
        binding: Binding,
        draw: Layout,
        outputs: Outputs,
        scalars: Mapping[str, int | float],
        *,
        fresh: int,
        workspace_bytes: int,
    ) -> bytes: ...


class Child:
    """One process of one side, made by ``native``, ``python`` or ``numba``; it starts meanwhile.

    ``cores`` is how many its threads may use; ``trusted`` says that it runs only the judge's own code.
    """

    def __init__(
        self,
        process: ChildProcess,
        binding: Binding,
        encode: Loader,
        *,
        cores: int,
        pool: Pool | None = None,
        trusted: bool = False,
        load_timeout_s: float = LOAD_TIMEOUT_S,
    ) -> None:
        self.clocked = True
        """Whether CPU time outside calls or beyond the cores is refused: only what is timed asks for it."""
        self._process = process
        self._watch = Watch(process, cores)
        self._load_timeout_s = load_timeout_s
        self._binding = binding
        self._encode = encode
        self._trusted = trusted
        self._greeted = False
        self._loaded = False
        self._load_modes = ""
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
        ``sanitized`` is for a library built with the sanitizers of either compiler family.
        """
        from hpcagent_bench.harness.runner import start

        process = start.native(
            library,
            binding,
            cores=cores,
            memory_bytes=memory_bytes,
            stack_mb=stack_mb,
            sealed=sealed,
            sanitizer=start.sanitizer_family(library) if sanitized else "",
        )
        return cls(process, binding, messages.load, cores=len(cores), pool=pool)

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
        return cls(
            process,
            binding,
            messages.load_json,
            cores=len(cores),
            pool=pool,
            trusted=True,
            load_timeout_s=COMPILE_TIMEOUT_S,
        )

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
        """A child that calls ``function`` of the untrusted Python module file ``module`` (NumPy or numba).

        It takes arrays and scalars by ``arg_order``; the module is loaded with the first draw. A limit of
        ``memory_bytes`` leaves room for the interpreter itself.
        """
        from hpcagent_bench.harness.runner import start

        process = start.python(
            module,
            function,
            arg_order,
            cores=cores,
            memory_bytes=memory_bytes,
            stack_mb=stack_mb,
            sealed=sealed,
        )
        return cls(
            process,
            binding,
            messages.load_json,
            cores=len(cores),
            pool=pool,
            load_timeout_s=COMPILE_TIMEOUT_S,
        )

    def sanitizer_notes(self) -> str:
        """What the undefined-behaviour sanitizer said so far, a line each, empty when nothing."""
        return sanitizer_report.undefined(self._process.printed())

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
        return proc.mapped_files(self.pid)

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
            found = sanitizer_report.memory_error(self._process.printed())
            return self._fail(status, found or f"{prefix}{gone} ({step})")
        except Late as late:
            return self._fail("refused" if step == "start" else "timeout", f"{prefix}{late} ({step})")
        except Over as over:
            return self._fail("crash", f"{over} ({step})")
        except Unstoppable as stuck:
            return self._fail("refused", f"seal: {stuck}")
        except Refused as refused:
            return self._fail("refused", str(refused), refused.overrun)
        except OSError as error:
            return self._fail("refused", f"memory: {error} ({step})")

    def _fail(
        self, status: Literal["crash", "timeout", "refused"], detail: str, overrun: str = ""
    ) -> Outcome:
        self._process.kill()
        self._failed = Outcome(status, detail=" ".join(detail.split()), overrun=overrun)
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

        Nothing may be computed meanwhile, but for the first draw: libraries start their threads when opened,
        and the first call is the warm-up.
        """
        draw.seal()
        start = draw.start(messages.output_names(self._binding))
        fresh, descriptors = self._memory(draw, start, workspace_bytes)
        assert self._outputs is not None
        frame = self._encode(
            self._binding, draw.layout, self._outputs, scalars, fresh=fresh, workspace_bytes=workspace_bytes
        )
        if self._loaded:
            self._watch.before_load(self._watched)
        self._process.thaw()
        self._process.send(frame, descriptors)
        answer = self._process.receive(self._load_timeout_s)
        if messages.kind(answer) == messages.FAIL:
            raise Refused(_said(answer))
        if messages.kind(answer) != messages.READY:
            raise Refused(f"protocol: frame {messages.kind(answer)} where {messages.READY} was due")
        if self._loaded:
            new = draw.layout.total * bool(fresh & messages.NEW_DRAW)
            new += self._outputs.total * bool(fresh & messages.NEW_OUTPUTS)
            self._watch.after_load(new if self._watched else None)
        self._load_modes = messages.fp_modes(answer)
        self._loaded = True
        if self._trusted:
            self._release()

    @property
    def _watched(self) -> bool:
        """Whether its CPU time outside calls can refuse it."""
        return self.clocked and not self._trusted

    def _memory(self, draw: Draw, start: Start, workspace_bytes: int) -> tuple[int, list[int]]:
        """Begin the outputs; say which memory the child has not mapped yet, as flags and descriptors."""
        fresh, descriptors = 0, []
        if self._draw_serial != draw.block.serial:
            fresh |= messages.NEW_DRAW
            descriptors.append(draw.fd)
            self._draw_serial = draw.block.serial
        held = self._outputs
        fits = held is not None and held.asked == start.layout and held.room >= workspace_bytes
        if held is not None and not fits:
            fits = held.lay_again(start.layout, workspace_bytes)
        if held is None or not fits:
            # the old buffers stay out of the pool until the child that still maps them is gone
            if held is not None:
                self._retired.append(held)
            held = self._outputs = Outputs(start.layout, self._pool, workspace_bytes)
            fresh |= messages.NEW_OUTPUTS
            descriptors.append(held.fd)
        held.begin(start, workspace_bytes)
        return fresh, descriptors

    def _go(self, timeout_s: float) -> Outcome:
        """Start the call, stamp it from outside, stop the child, see what it did and left behind."""
        process = self._process
        nonce = secrets.randbits(64)
        frame = messages.go(nonce)
        if process.waiting() is not None:
            raise Refused("protocol: spoke before the call began")
        self._watch.before_call()
        start = time.perf_counter_ns()
        process.send(frame)
        answer = process.receive(timeout_s)
        outside = time.perf_counter_ns() - start
        self._watch.at_answer()
        process.freeze()
        used = self._watch.standing()
        done = messages.done(answer)
        if done is None and messages.kind(answer) == messages.FAIL:
            return self._fail("crash", _said(answer))
        if done is None or done.nonce != nonce or process.waiting():
            raise Refused("protocol: a forged or repeated answer")
        if done.inside_ns > outside:
            raise Refused(f"protocol: says {done.inside_ns} ns of a call that took {outside} ns")
        if self._watched:
            used.check()
        overrun = self._outputs.overrun() if self._outputs is not None else ""
        if overrun:
            raise Refused(f"overrun: writes past the end of {overrun}", overrun)
        return Outcome(
            "ok",
            inside_ns=done.inside_ns,
            outside_ns=outside,
            cpu_ns=used.cpu_ns,
            late_cpu_ns=used.late_cpu_ns,
            load_cpu_ns=used.load_cpu_ns,
            fp_modes=modes_changed(self._load_modes, done.fp_modes),
            skewed=done.skewed,
        )

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
    return f"child: {text}" if text.startswith(JUDGE_SIDE) else text or "failed without a reason"
