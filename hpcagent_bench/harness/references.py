"""The judge's own references: emitted, built once, started as sealed children (scoring.md 1.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hpcagent_bench import config, translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.memory import Pool
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.toolchain.abi import Binding, binding


class JudgeFault(Exception):
    """The judge cannot answer; never the submission's fault (status score_error)."""


@dataclass
class References:
    """Reference children of the kernel being graded.

    The numba child stays alive between grades of one kernel, since importing and compiling cost
    more than all its calls; another kernel's grade closes it. The C child is one process an input,
    like the candidate it is compared with.
    """

    settings: config.Judge
    cores: tuple[int, ...]
    pool: Pool
    _kernel: str = ""
    _sources: dict[translators.Language, str] = field(default_factory=dict, repr=False)
    _numba: Child | None = field(default=None, repr=False)

    def start(self, kernel: Kernel, kind: str) -> Child:
        """A child ready for calls of ``kind``; JudgeFault when the reference cannot be built."""
        self._keep_only(kernel.name)
        call = self.binding(kernel)
        starters: dict[str, Callable[[Kernel, Binding], Child]] = {
            "c": self._start_c,
            "numba": self._start_numba,
        }
        return starters[kind](kernel, call)

    def binding(self, kernel: Kernel) -> Binding:
        """The kernel's call at the judged datatype."""
        return binding(kernel, self.settings.service.datatype)

    def close(self) -> None:
        """End every child kept alive."""
        if self._numba is not None:
            self._numba.close()
        self._numba = None

    def discard(self, kind: str, child: Child) -> None:
        """Take back a child after an input: a healthy numba child is kept, every other one ends."""
        if kind == "numba" and child.alive and child is self._numba:
            return
        if child is self._numba:
            self._numba = None
        child.close()

    def _keep_only(self, kernel: str) -> None:
        if kernel != self._kernel:
            self.close()
            self._sources.clear()
            self._kernel = kernel

    def _source(self, kernel: Kernel, language: translators.Language) -> str:
        """The reference's text, translated once for all inputs and grades of a kernel in a row."""
        if language not in self._sources:
            self._sources[language] = translators.emit(kernel, language, self.settings.service.datatype)
        return self._sources[language]

    def _start_c(self, kernel: Kernel, call: Binding) -> Child:
        source = self._source(kernel, "c")
        built = sandbox.build_reference(source, "c", kernel.symbol)
        if not built.ok or built.library is None:
            raise JudgeFault(f"the C reference of {kernel.name} does not build: {built.log[-500:]}")
        # sequential by definition: one core, whatever the candidate is granted
        return Child.native(
            built.library,
            call,
            cores=self.cores[:1],
            memory_bytes=int(self.settings.limits.kernel_memory_gb * 2**30),
            stack_mb=self.settings.limits.thread_stack_mb,
            sealed=self.settings.grading.seal,
            pool=self.pool,
        )

    def _start_numba(self, kernel: Kernel, call: Binding) -> Child:
        if self._numba is not None and self._numba.alive:
            return self._numba
        source = self._source(kernel, "numba")
        self._numba = Child.numba(
            source,
            kernel.function,
            kernel.arg_order,
            call,
            cores=self.cores,
            sealed=self.settings.grading.seal,
            pool=self.pool,
        )
        return self._numba
