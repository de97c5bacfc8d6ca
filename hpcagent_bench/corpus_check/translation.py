"""What the translators make of one kernel, each asked for once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hpcagent_bench import translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.translators import frontend, ir
from hpcagent_bench.translators.analysis.dependence import Verdict, verdicts


@dataclass
class Translation:
    """A kernel's typed form, the verdicts on its loops, its references; Unsupported where not covered."""

    kernel: Kernel
    _sources: dict[translators.Language, str] = field(default_factory=dict, repr=False)

    @cached_property
    def function(self) -> ir.Function:
        return frontend.translate(self.kernel)

    @cached_property
    def known(self) -> dict[int, Verdict]:
        """The verdict on every loop of ``function``, by the loop's id."""
        return verdicts(self.function)

    def source(self, language: translators.Language) -> str:
        """The reference the judge would use."""
        if language not in self._sources:
            self._sources[language] = translators.emit(self.kernel, language)
        return self._sources[language]
