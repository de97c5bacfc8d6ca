"""A submission as the judge grades it, and the state of one grade that the gates work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpcagent_bench import protocols
from hpcagent_bench.corpus import expressions
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputResult
from hpcagent_bench.harness.metric import InputCell
from hpcagent_bench.harness.sandbox import Build

if TYPE_CHECKING:
    from hpcagent_bench.harness.checks.untimed import Untimed


@dataclass(frozen=True)
class Submission:
    """What an agent handed in. ``build`` is the request's own list, reduced before use.

    ``source`` is the delivered text, empty for a ``library``, whose file the judge has already copied to a
    place no agent reaches. ``family`` is the compiler family (gcc or llvm), for the candidate and for the C
    reference it is measured against. ``workspace`` is bytes as an expression over sizes and knobs; the larger
    of it and ``workspace_bytes`` counts. ``libraries`` were asked for by name; their -l stand in ``build``.
    """

    kernel: Kernel
    language: str
    source: str
    build: tuple[str, ...] = ()
    workspace_bytes: int = 0
    source_mode: str = "source"
    family: str = "gcc"
    library: Path | None = None
    workspace: str = ""
    libraries: tuple[str, ...] = ()

    def workspace_for(self, params: Mapping[str, int | float], limit: int) -> int:
        """The workspace asked for at these sizes, in bytes, never above ``limit``.

        Where the expression has no value (it divides by zero there) none is given.
        """
        asked = self.workspace_bytes
        if self.workspace:
            try:
                asked = max(asked, expressions.integer(self.workspace, params))
            except UserError:
                return min(asked, limit)
        return min(max(asked, 0), limit)


@dataclass(frozen=True)
class Settings:
    """How a grade is made: the protocol, its inputs, and the seed its values come from."""

    protocol: protocols.Protocol
    cells: tuple[InputCell, ...]
    seed: int


@dataclass(frozen=True)
class Rejection:
    """Why a gate ended the grade. ``status`` as in scoring.md 3.2."""

    gate: str
    status: str
    reason: str


@dataclass
class Grading:
    """One grade in the making: gates read it, fill it in, and may reject it."""

    context: GradingContext
    submission: Submission
    settings: Settings
    folder: Path
    build: Build | None = None
    rebuilt: Build | None = None
    """The same submission built once more, from its text and elsewhere (final grades)."""
    sanitized: Build | None = None
    """Built with sanitizers; None where they do not apply."""
    untimed: Untimed | None = None
    """What runs untimed cases, shared by the gates after the timed calls."""
    inputs: list[InputResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader of the grade should know: gates not applied, constructs recorded, never a refusal."""
    suspicion: str = ""
    """Why the whole grade is suspect although nothing rejected it (undefined behaviour), or empty."""

    def workspace_bytes(self, params: Mapping[str, int | float]) -> int:
        """The workspace the submission asked for on an input of these sizes."""
        limit = int(self.context.settings.limits.kernel_memory_gb * 2**30)
        return self.submission.workspace_for(params, limit)
