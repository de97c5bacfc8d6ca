"""The judge's own references: emitted, built once, started as sealed children (scoring.md 1.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpcagent_bench import config, translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.blocks import Pool
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.toolchain import flags
from hpcagent_bench.toolchain.abi import Binding, binding


class JudgeFault(Exception):
    """The judge cannot answer; never the submission's fault (status score_error)."""


@dataclass
class References:
    """Reference children of the kernel being graded.

    A numba child stays alive between grades of one kernel, since importing and compiling cost more than all
    its calls; another kernel's grade closes it. Every other child belongs to who started it.
    """

    settings: config.Judge
    cores: tuple[int, ...]
    pool: Pool
    _kernel: str = ""
    _sources: dict[translators.Language, str] = field(default_factory=dict, repr=False)
    _libraries: dict[tuple[str, ...], Path] = field(default_factory=dict, repr=False)
    _numba: Child | None = field(default=None, repr=False)

    def start(self, kernel: Kernel, kind: str, family: str = "gcc", *, own: bool = False) -> Child:
        """A child ready for calls of ``kind``.

        ``family`` builds the sequential C reference: the candidate's compiler family, so that no ratio
        compares compilers. ``own`` asks for a process of the caller's own even where one is kept alive.

        Raises:
            JudgeFault: the reference cannot be translated or built.
        """
        self._keep_only(kernel.name)
        starters: dict[str, Callable[[], Child]] = {
            "c": lambda: self._native(kernel, "c", family, self.cores[:1]),
            "c-autopar": lambda: self._native(kernel, "c-autopar", "gcc", self.cores),
            "vendored": lambda: self._vendored(kernel, family),
            "numba": lambda: self._kept_numba(kernel, own=own),
            "numpy": lambda: self._python(kernel, kernel.numpy_source.read_text(encoding="utf-8")),
        }
        try:
            child = starters[kind]()
            child.clocked = (
                False  # the judge's own code computes when it is told to; a busy machine may seem to
            )
            return child
        except (UserError, translators.Unsupported) as error:
            raise JudgeFault(f"the {kind} reference of {kernel.name} cannot be made: {error}") from error

    def binding(self, kernel: Kernel) -> Binding:
        """The kernel's call at the judged datatype."""
        return binding(kernel, self.settings.service.datatype)

    def close(self) -> None:
        """End every child kept alive."""
        if self._numba is not None:
            self._numba.close()
        self._numba = None

    def discard(self, child: Child) -> None:
        """Take back a child: the kept one stays while it is healthy, every other ends."""
        if child is self._numba:
            if child.alive:
                return
            self._numba = None
        child.close()

    def _keep_only(self, kernel: str) -> None:
        if kernel != self._kernel:
            self.close()
            self._sources.clear()
            self._libraries.clear()
            self._kernel = kernel

    def _source(self, kernel: Kernel, language: translators.Language) -> str:
        """The reference's text, translated once for all inputs and grades of a kernel in a row."""
        if language not in self._sources:
            self._sources[language] = translators.emit(kernel, language, self.settings.service.datatype)
        return self._sources[language]

    def _native(self, kernel: Kernel, kind: str, family: str, cores: Sequence[int]) -> Child:
        """The emitted C reference. Sequential, it gets one core, whatever the candidate is granted."""
        extra = flags.autopar(len(cores)) if kind == "c-autopar" else ()
        return self._built(kernel, kind, self._source(kernel, "c"), "c", family, cores, extra)

    def _vendored(self, kernel: Kernel, family: str) -> Child:
        """The kernel's own baseline, which its manifest names, on one core or on all."""
        own = kernel.manifest.baseline
        if own is None:
            raise UserError(f"kernel {kernel.name} ships no baseline of its own", "race the references")
        text = (kernel.folder / own.source).read_text(encoding="utf-8")
        chosen = family if own.compilers is None or family in own.compilers else own.compilers[0]
        cores = self.cores if own.mode == "multi_core" else self.cores[:1]
        return self._built(kernel, "vendored", text, own.language, chosen, cores, ())

    def _built(
        self,
        kernel: Kernel,
        kind: str,
        source: str,
        language: str,
        family: str,
        cores: Sequence[int],
        extra: Sequence[str],
    ) -> Child:
        known = (kind, family, source)
        if known not in self._libraries:
            built = sandbox.build_reference(source, language, kernel.symbol, family, extra=extra)
            if built.library is None:
                raise JudgeFault(f"the {kind} reference of {kernel.name} does not build: {built.log[-500:]}")
            self._libraries[known] = built.library
        return Child.native(
            self._libraries[known],
            self.binding(kernel),
            cores=cores,
            memory_bytes=int(self.settings.limits.kernel_memory_gb * 2**30),
            stack_mb=self.settings.limits.thread_stack_mb,
            sealed=self.settings.grading.seal,
            pool=self.pool,
        )

    def _kept_numba(self, kernel: Kernel, *, own: bool) -> Child:
        if own:
            return self._python(kernel, self._source(kernel, "numba"))
        if self._numba is None or not self._numba.alive:
            self.close()
            self._numba = self._python(kernel, self._source(kernel, "numba"))
        return self._numba

    def _python(self, kernel: Kernel, source: str) -> Child:
        return Child.numba(
            source,
            kernel.function,
            kernel.arg_order,
            self.binding(kernel),
            cores=self.cores,
            sealed=self.settings.grading.seal,
            pool=self.pool,
        )
