"""What a grade is made with: settings, cores, secret seeds, and what this judge process remembers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from hpcagent_bench import config
from hpcagent_bench.corpus import precision
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import pinning
from hpcagent_bench.harness.blocks import Pool
from hpcagent_bench.harness.denominator import RaceMemory
from hpcagent_bench.harness.machine.node import NodeWatch
from hpcagent_bench.harness.memory import Layout, layout_for
from hpcagent_bench.harness.phases import Phases
from hpcagent_bench.harness.references import JudgeFault, References
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.timed.transport import Transport
from hpcagent_bench.toolchain.abi import Binding


def reference_call(kernel: Kernel) -> Callable[[dict[str, npt.NDArray[Any]]], None]:
    """The NumPy reference at preset S as a function of its arrays, which it changes in place."""
    function = kernel.load_numpy()
    scalars = kernel.scalars({**kernel.configs[0], **kernel.presets["S"]})

    def call(arrays: dict[str, npt.NDArray[Any]]) -> None:
        function(*(arrays[name] if name in arrays else scalars[name] for name in kernel.arg_order))

    return call


def no_progress(phase: str, **facts: object) -> None:
    """The progress sink of a grade nobody watches."""


@dataclass
class GradingContext:
    """Everything a grade needs besides the submission. One per judge process; not thread-safe."""

    settings: config.Judge
    sizes: config.Sizes
    cores: tuple[int, ...]
    seeds: GradingSeeds
    progress: Callable[..., None] = no_progress
    work: Path | None = None
    """Where grades build; None is the system's temporary folder."""
    memory: RaceMemory = field(default_factory=RaceMemory)
    pool: Pool = field(default_factory=Pool)
    phases: Phases = field(default_factory=Phases)
    transport: Transport = field(default_factory=Transport)
    granted: frozenset[int] = field(default_factory=pinning.granted)
    """The affinity mask this judge started with."""
    changed_bytes: dict[tuple[str, str, str], int] = field(default_factory=dict, repr=False)
    """By kernel, datatype and shape: bytes of output elements that the reference changes in a call."""
    references: References = field(init=False)
    dual_oracle: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    """Where references were compared on a public draw: why one gave no answer, empty when they agreed."""
    _node: NodeWatch | None = field(default=None, repr=False)
    _written: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.references = References(self.settings, self.cores, self.pool)

    @property
    def node(self) -> NodeWatch:
        """The watch over this node, which looks at nothing before it is asked to."""
        if self._node is None:
            self._node = NodeWatch(self.settings, self.cores, progress=self.progress, guard=self.timing)
        return self._node

    @property
    def threads(self) -> int:
        """Threads for drawing and comparing: every core this process may use, since nothing is timed then."""
        return len(os.sched_getaffinity(0))

    def require_cores(self) -> None:
        """JudgeFault when the affinity mask is no longer the one this judge started with."""
        changed = pinning.surprise(self.cores, self.granted, pinning.granted())
        if changed:
            raise JudgeFault(f"infra: cores: {changed}")

    def binding(self, kernel: Kernel) -> Binding:
        """The kernel's call at the judged datatype."""
        return self.references.binding(kernel)

    def layouts(self, kernel: Kernel, params: Mapping[str, int | float]) -> tuple[Layout, Layout]:
        """How a kernel's inputs and its outputs lie in memory at these sizes, at the judged datatype."""
        dtypes = kernel.dtypes(self.settings.service.datatype)
        layout = layout_for(self.binding(kernel), kernel.shapes(params), dtypes)
        inputs = layout.part(name for name in layout.names if name not in kernel.outputs)
        return inputs, layout.part(kernel.outputs)

    def budget_s(self, kernel: Kernel) -> float:
        """The whole budget of one call, in seconds (timeouts.kernel_s*)."""
        limits = self.settings.timeouts
        if limits.kernel_s_override is not None:
            return limits.kernel_s_override
        return limits.kernel_s_by_level.get(kernel.level, limits.kernel_s)

    def tolerances(self, kernel: Kernel, params: dict[str, int | float]) -> dict[str, precision.Tolerance]:
        """The band of every graded output at these sizes; the written extents are probed once a kernel."""
        if kernel.name not in self._written:
            self._written[kernel.name] = precision.write_probe(kernel, reference_call(kernel))
        written = self._written[kernel.name]
        return {
            name: precision.tolerance(kernel, name, params, self.settings.service.datatype, written.get(name))
            for name in kernel.outputs
        }

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Hold measurement.timing_lock, so that graders sharing a host never time at once."""
        path = self.settings.measurement.timing_lock
        if not path:
            yield
            return
        with Path(path).open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        """End the children kept alive between grades; give back memory and disk."""
        self.references.close()
        self.pool.close()
        if self.work is not None:
            shutil.rmtree(self.work, ignore_errors=True)
