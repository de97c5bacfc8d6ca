"""Where the wall time of a grade goes: seconds per phase, summed as it goes on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PHASES = ("build", "start", "draw", "load", "call", "compare", "held-out", "re-verify", "sanitize", "record")
"""Every phase a grade may spend time in; a phase inside another is counted in the inner one alone."""


@dataclass
class Phases:
    """A stopwatch with one total per phase. Not thread-safe: only the grading thread uses it."""

    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list, repr=False)
    _since: float = field(default=0.0, repr=False)

    @contextlib.contextmanager
    def of(self, phase: str) -> Iterator[None]:
        """Count what happens inside as ``phase``; an outer phase stands still meanwhile."""
        self._switch()
        self._open.append(phase)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count ``seconds`` of ``source`` as ``target``: for what only a clock elsewhere tells apart."""
        self.seconds[source] = self.seconds.get(source, 0.0) - seconds
        self.seconds[target] = self.seconds.get(target, 0.0) + seconds

    def _switch(self) -> None:
        """Book the time since the last change on the innermost open phase."""
        now = time.perf_counter()
        if self._open:
            phase = self._open[-1]
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def since(self, earlier: Mapping[str, float]) -> dict[str, float]:
        """What was added after ``earlier``, a copy of ``seconds``."""
        return {
            phase: total - earlier.get(phase, 0.0)
            for phase, total in self.seconds.items()
            if total != earlier.get(phase, 0.0)
        }

    def take(self) -> dict[str, float]:
        """The totals so far; the next grade starts from nothing."""
        taken, self.seconds = self.seconds, {}
        return taken
