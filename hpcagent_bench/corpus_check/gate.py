"""The corpus gate of one kernel: every check in order, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hpcagent_bench import translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check import (
    accepts,
    agreement,
    cache,
    draws,
    lint,
    rejects,
    reorderings,
    rewrites,
    static,
)
from hpcagent_bench.corpus_check.agreement import Step
from hpcagent_bench.corpus_check.calls import NotBuilt, copies, native_call, numba_call
from hpcagent_bench.corpus_check.draws import Answered, Oracle
from hpcagent_bench.corpus_check.findings import Finding, Report
from hpcagent_bench.corpus_check.translation import Translation
from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain import flags
from hpcagent_bench.toolchain.in_process import Arrays, Call

LANGUAGES = translators.LANGUAGES


def quiet(text: str) -> None:
    """The step sink of a check nobody watches."""


@dataclass
class Gate:
    """Checks one kernel. ``step`` is told what is being done before it is done."""

    kernel: Kernel
    titles: Mapping[str, tuple[str, str]]
    step: Step = quiet
    fixtures: Path | None = None
    report: Report = field(init=False)
    calls: dict[str, Call] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.report = Report(self.kernel.name)
        self.oracle = Oracle(self.kernel)
        self.translation = Translation(self.kernel)

    def run(self) -> Report:
        """All checks; later ones are left out when what they stand on failed."""
        started = time.monotonic()
        static.check(self.kernel, self.titles, self.report)
        answered = self._answers()
        if answered:
            self._languages(answered)
            small = [item for item in answered if item.case.place.split(" ")[0] == "S"]
            lint.check_draws(self.kernel, small, self.report)
            lint.check_outputs(self.oracle, answered, self.report)
            if "c" in self.calls:
                self.step("influence of the inputs")
                lint.check_influence(self.oracle, self.calls["c"], small, self.report)
            self._rejects(small)
            if set(self.calls) == set(LANGUAGES):
                self._accepts(small)
        self.report.seconds = time.monotonic() - started
        return self.report

    def _answers(self) -> list[Answered]:
        answered = []
        for case in draws.cases(self.kernel):
            self.step(f"numpy at {case}")
            try:
                answered.append(self.oracle.answer(case))
            except Exception as error:  # whatever an author's reference raises is the finding
                what = error if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                self.report.add(
                    "numpy", "failed", f"{case}: {what}", "the reference must work at every size from 1 on"
                )
                return []
        self.report.draws = len(answered)
        self.report.add("numpy", "ok", f"{len(answered)} inputs")
        return answered

    def _languages(self, answered: list[Answered]) -> None:
        """Each emitted language agrees with NumPy on every input."""
        for language in LANGUAGES:
            self.step(f"emitting and compiling {language}")
            try:
                call = self._reference(language)
            except (UserError, NotBuilt) as error:
                self.report.add(f"language: {language}", "failed", str(error), _REFUSED)
                continue
            wrong = agreement.check(self.oracle, call, answered, language, self.step)
            if wrong:
                self.report.add(f"language: {language}", "failed", wrong, _DISAGREES)
                continue
            self.calls[language] = call
            self.report.add(f"language: {language}", "ok", f"{len(answered)} inputs")
        self.report.languages = tuple(self.calls)

    def _reference(self, language: translators.Language) -> Call:
        source = self.translation.source(language)
        if language == "numba":
            return numba_call(self.kernel, source)
        return native_call(self.kernel, source, language)

    def _accepts(self, small: list[Answered]) -> None:
        accepts.check(self.oracle, self.translation, self.calls, small, self.report, self.step, self.fixtures)

    def _rejects(self, small: list[Answered]) -> None:
        self.step("reject fixtures")
        fixtures = [
            *rejects.SIMPLE,
            *rejects.of_inputs(self.oracle),
            rejects.of_previous(small),
            rejects.of_run("single precision", self._single),
            *self._truncated(),
        ]
        rejects.check(self.oracle, small, fixtures, self.report)

    def _truncated(self) -> Iterator[rejects.Fixture]:
        """The reference with its reductions cut short, where it has any."""
        if "c" not in self.calls:
            return
        source = reorderings.TRUNCATED.source(self.translation)
        if source is None:
            self.report.add("reject: truncated reduction", "n/a", "no loop is a reduction")
            return
        call = native_call(self.kernel, source, "c", extra=flags.QUICK)

        def run(item: Answered) -> Arrays:
            self.step(f"truncated reduction at {item.case}")
            work = copies(item.drawn)
            call(work, item.case.values)
            return work

        yield rejects.of_run("truncated reduction", run)

    def _single(self, item: Answered) -> Arrays | None:
        """The reference computed in single precision throughout."""
        halves = {"float64": np.float32, "complex128": np.complex64}
        work = {
            name: array.astype(halves.get(array.dtype.name, array.dtype))
            for name, array in item.drawn.items()
        }
        try:
            self.oracle.call(work, item.case.values)
        except (ArithmeticError, ValueError, IndexError):  # no answer at all, like a submission's crash
            return None
        return work


_REFUSED = "write the reference within what the translators cover, or see: hpcagent-bench kernels emit"
_DISAGREES = "compare with: hpcagent-bench kernels emit KERNEL --language LANGUAGE"


def check_kernel(
    name: str,
    root: Path | None = None,
    titles: Mapping[str, tuple[str, str]] | None = None,
    step: Step = quiet,
    fixtures: Path | None = None,
    use_cache: bool = True,
) -> Report:
    """Load and check one kernel of the corpus below ``root``; a manifest's mistake is a finding.

    ``titles`` are those of the corpus, read when not given. The report of a kernel that passed before, with
    nothing changed since, comes from the cache.
    """
    report = Report(name)
    try:
        kernel = spec.load(name, root)
        known_titles = static.corpus_titles(root) if titles is None else titles
    except UserError as error:
        report.add("manifest", "failed", str(error))
        return report
    digest = cache.key(kernel, rewrites.hand_written(kernel, fixtures), static.clash(kernel, known_titles))
    known = cache.load(digest) if use_cache else None
    if known is not None:
        return known
    done = Gate(kernel, known_titles, step, fixtures).run()
    done.findings.insert(0, Finding("manifest", "ok"))
    cache.keep(digest, done)
    return done
