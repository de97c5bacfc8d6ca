"""The side being graded on one input: its processes, its calls under the guillotine, its answers compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from hpcagent_bench.corpus import precision
from hpcagent_bench.harness import pinning
from hpcagent_bench.harness.native_call import Child, Draw, Outcome
from hpcagent_bench.harness.phases import Phases
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.runner.watch import COUNTED
from hpcagent_bench.harness.timed.schedule import Turn
from hpcagent_bench.harness.timed.transport import Gap, gap_of

GPU_RUNTIMES = ("libcuda.so", "libcudart", "libnvidia-", "libamdhip64", "libhsa-runtime", "libze_loader")
"""How the files of GPU runtimes are called (scoring.md 3.2)."""


def gpu_runtime(files: Iterable[str]) -> str:
    """The GPU runtime among mapped files, or an empty string; a host grade must not use one."""
    return next((name for name in sorted(files) if name.startswith(GPU_RUNTIMES)), "")


@dataclass
class CandidateRuns:
    """What the candidate did on one input so far. Times in ns; ``failed`` names the first failing run.

    ``inside``, ``outside``, ``cpu`` and ``gaps`` hold the timed runs in order, ``cold`` the first call of
    every process. ``skewed`` counts the timed runs in which its own clock fell behind the kernel's.
    ``fp_modes`` is what it left changed of floating-point modes, ``strayed`` the cores it was found on that
    it was not granted. ``disturbed`` says that counted CPU time alone speaks against it, and ``attempts`` how
    often the input was measured for that.
    """

    inside: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    skewed: int = 0
    cold: list[int] = field(default_factory=list)
    failed: str = ""
    timed_out: bool = False
    disturbed: bool = False
    attempts: int = 1
    stopped_at_ns: float | None = None
    max_rel_error: float = 0.0
    device_runtime: str = ""
    fp_modes: str = ""
    strayed: frozenset[int] = frozenset()


@dataclass
class CandidateSide:
    """The candidate on one input. ``limit_s`` bounds every call, ``workspace_bytes`` is scratch memory."""

    start_one: Callable[[], Child]
    cores: tuple[int, ...]
    limit_s: float
    workspace_bytes: int
    phases: Phases
    runs: CandidateRuns = field(default_factory=CandidateRuns)
    _child: Child | None = field(default=None, repr=False)
    _waiting: list[Child] = field(default_factory=list, repr=False)

    def start(self, count: int) -> None:
        """Start ``count`` processes; they get ready side by side."""
        for _ in range(count):
            self._waiting.append(self.start_one())

    def await_ready(self) -> None:
        """Wait until every process started stands idle."""
        for child in self._waiting:
            child.await_ready()

    def next_process(self) -> None:
        """End the current process; the next calls go to one that waits."""
        self.retire()
        self._child = self._waiting.pop(0) if self._waiting else self.start_one()

    def call(
        self, draw: Draw, scalars: Mapping[str, int | float], turn: Turn, cap_ns: float | None
    ) -> Outcome | None:
        """One call; None once the candidate has been stopped.

        ``cap_ns`` is the guillotine of timed runs (scoring.md 1.3). It spares the warm-up of a process: that
        is the complete run a stopped candidate is graded on.
        """
        if self._child is None or self.runs.stopped_at_ns is not None:
            return None
        cap_s = cap_ns / 1e9 if turn.timed and cap_ns is not None else self.limit_s
        limit = min(self.limit_s, cap_s)
        with self.phases.of("load"):
            outcome = self._child.call(draw, scalars, timeout_s=limit, workspace_bytes=self.workspace_bytes)
        self.phases.move("load", "call", outcome.outside_ns / 1e9)
        slow = outcome.status == "timeout" and outcome.detail.endswith("(call)")
        if slow and limit < self.limit_s:
            self.runs.stopped_at_ns = cap_ns
            return None
        return outcome

    def grade(
        self,
        outcome: Outcome,
        answers: Mapping[str, npt.NDArray[Any]],
        turn: Turn,
        tolerances: Mapping[str, precision.Tolerance],
        threads: int,
    ) -> None:
        """Compare one call's outputs with the oracle's for the same draw; note times of timed runs."""
        failure = self._fault(outcome) or self._compared(answers, tolerances, threads)
        if failure:
            self.runs.failed = f"rep-verify[{turn.name}] {failure}"
            return
        self.runs.fp_modes = self.runs.fp_modes or outcome.fp_modes
        if turn.opens:
            self.runs.cold.append(outcome.inside_ns)
        if turn.timed:
            self.runs.inside.append(outcome.inside_ns)
            self.runs.outside.append(outcome.outside_ns)
            self.runs.cpu.append(outcome.cpu_ns)
            self.runs.gaps.append(gap_of(outcome))
            self.runs.skewed += outcome.skewed

    def _fault(self, outcome: Outcome) -> str:
        """How the call itself went wrong, or an empty string; JudgeFault when the judge did."""
        if outcome.judges_fault:
            raise JudgeFault(outcome.detail)
        if outcome.status != "ok":
            self.runs.timed_out = outcome.status == "timeout"
            self.runs.disturbed = outcome.status == "refused" and outcome.detail.startswith(COUNTED)
            return f"{outcome.status}: {outcome.detail}"
        return f"wrote past the end of {outcome.overrun}" if outcome.overrun else ""

    def _compared(
        self,
        answers: Mapping[str, npt.NDArray[Any]],
        tolerances: Mapping[str, precision.Tolerance],
        threads: int,
    ) -> str:
        assert self._child is not None
        outputs = self._child.outputs
        with self.phases.of("compare"):
            for name, tolerance in tolerances.items():
                found = precision.compare(outputs[name], answers[name], tolerance, threads=threads, name=name)
                self.runs.max_rel_error = max(self.runs.max_rel_error, found.max_rel_error)
                if not found.ok:
                    return found.detail
        return ""

    def retire(self) -> None:
        """Look at the current process a last time, then end it."""
        if self._child is None:
            return
        if self._child.alive:
            runtime = gpu_runtime(self._child.mapped_files())
            self.runs.device_runtime = self.runs.device_runtime or runtime
            self.runs.strayed |= pinning.strayed(self._child.pid, self.cores)
        self._child.close()
        self._child = None

    def close(self) -> None:
        """End every process."""
        for child in self._waiting:
            child.close()
        self._waiting.clear()
        if self._child is not None:
            self._child.close()
            self._child = None
