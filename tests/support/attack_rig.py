"""Attacks on the judge, graded as submissions in this process, and what must hold after each of them.

A grade here is a whole one: real compilers, sealed children, every gate of its route, on the tiny rung with
the C reference as denominator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hpcagent_bench import config, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission

KERNEL = "polygon_area_terms"
"""What an attack works on unless it says otherwise: inputs x and y, a separate output area."""

SEEDS = GradingSeeds(0x5EC2E7_01, 0x5EC2E7_02, 0x5EC2E7_03)

INCLUDES = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
"""


def honest(kernel: str = KERNEL, language: translators.Language = "c") -> str:
    """The emitted reference: an honest submission that gains nothing and must be accepted."""
    return translators.emit(spec.load(kernel), language)


def version(body: str, before: str = "", kernel: str = KERNEL) -> str:
    """A C submission with this function body; ``HONEST;`` in it does the kernel's whole work.

    ``before`` stands between the includes and the function, after ``honest_work``, the reference under
    another name. ``HONEST`` and ``ARGUMENTS`` name the kernel's own arguments, so they work in the body only.
    """
    symbol = spec.load(kernel).symbol
    reference = honest(kernel)
    found = re.search(rf"void {symbol}\((.*?)\)\s*\{{", reference, re.DOTALL)
    assert found is not None, reference
    names = [part.split()[-1].lstrip("*") for part in found[1].split(",")]
    work = reference.replace(f"void {symbol}(", "static __attribute__((unused)) void honest_work(")
    macros = f"#define ARGUMENTS {', '.join(names)}\n#define HONEST honest_work(ARGUMENTS)\n"
    return f"{INCLUDES}{work}\n{macros}\n{before}\nvoid {symbol}({found[1]})\n{{\n{body}\n}}\n"


@dataclass
class Rig:
    """A judge in this process."""

    context: GradingContext
    graded: set[str] = field(default_factory=set)
    """Kernels attacked so far."""

    def attack(
        self,
        source: str,
        language: str = "c",
        kernel: str = KERNEL,
        *,
        build: tuple[str, ...] = (),
        workspace_bytes: int = 0,
    ) -> scoring.Verdict:
        """What ``/submit`` says to a source."""
        self.graded.add(kernel)
        submission = Submission(spec.load(kernel), language, source, build, workspace_bytes)
        return grade_under.submit_grade(self.context, submission)

    def preview(
        self, source: str, language: str = "c", kernel: str = KERNEL, *, workspace_bytes: int = 0
    ) -> scoring.Verdict:
        """What ``/score`` says to a source: timed calls and clocks as in a final grade, on two inputs.

        For attacks on the clock, which the sanitizers of a final grade would often stumble over.
        """
        self.graded.add(kernel)
        submission = Submission(spec.load(kernel), language, source, (), workspace_bytes)
        return grade_under.score_grade(self.context, submission)

    def accepts(
        self, source: str, language: str = "c", kernel: str = KERNEL, *, workspace_bytes: int = 0
    ) -> scoring.Verdict:
        """Assert that ``/submit`` takes an honest source whole: solved, every input correct and valid.

        Under load a neighbour can make the clocks of one input disagree, so suspicion alone is tried again.
        """
        for _ in range(3):
            verdict = self.attack(source, language, kernel, workspace_bytes=workspace_bytes)
            assert (verdict.status, verdict.reason) == ("ok", ""), said(verdict)
            assert verdict.solved, said(verdict)
            assert len(verdict.inputs) == len(verdict.settings.cells)
            if all(one.valid for one in verdict.inputs):
                return verdict
        raise AssertionError(said(verdict))

    def catches(
        self, source: str, reason: str, kernel: str = KERNEL, *, workspace_bytes: int = 0, tries: int = 6
    ) -> None:
        """Assert that a preview refuses a source that hides time, or finds suspect what it gains by that.

        What is hidden must stand out from the delays of the references' own answers, which on a machine busy
        with other work can be as long: then the two cannot be told apart, and the grade is tried again.
        """
        for _ in range(tries):
            verdict = self.preview(source, kernel=kernel, workspace_bytes=workspace_bytes)
            gained = [one for one in verdict.inputs if one.ratio > 1.2]
            if verdict.status != "ok" or (not gained and any(one.suspect for one in verdict.inputs)):
                break
        else:
            raise AssertionError(said(verdict))
        if verdict.status != "ok":
            refused(verdict, verdict.status, reason)
        assert all(re.search(reason, one.suspect) for one in verdict.inputs if one.suspect), said(verdict)

    def serves(self) -> None:
        """Assert that after the attacks the honest grade of each kernel is what it would have been before."""
        for kernel in sorted(self.graded):
            verdict = self.preview(honest(kernel), kernel=kernel)
            assert (verdict.status, verdict.reason) == ("ok", ""), said(verdict)
            assert [len(one.result.runs.inside) for one in verdict.inputs] == [5, 5], said(verdict)
            assert all(one.result.correct for one in verdict.inputs), said(verdict)


def said(verdict: scoring.Verdict) -> str:
    """A verdict in words, for the message of a failed assertion."""
    suspects = [one.suspect for one in verdict.inputs]
    log = verdict.build.log[-500:] if verdict.build and not verdict.build.ok else ""
    return f"{verdict.status} {verdict.reason!r} suspects={suspects} suspicion={verdict.suspicion!r} {log}"


def unspoilt(verdict: scoring.Verdict) -> None:
    """Assert that every call of a source was right that spoils its answer when its attempt succeeds."""
    assert verdict.status == "ok", said(verdict)
    assert all(one.result.correct for one in verdict.inputs), said(verdict)


def refused(verdict: scoring.Verdict, status: str, reason: str) -> None:
    """Assert that a grade ended with this status and a reason that matches, and credits nothing."""
    assert verdict.status == status, said(verdict)
    assert re.search(reason, verdict.reason), said(verdict)
    assert (verdict.solved, verdict.score.score) == (False, 1.0), said(verdict)


def flagged(verdict: scoring.Verdict, reason: str) -> None:
    """Assert that nothing of a grade is credited because it is suspect, with a reason that matches."""
    reasons = [*(one.suspect for one in verdict.inputs), verdict.suspicion]
    assert any(re.search(reason, text) for text in reasons if text), said(verdict)
    assert verdict.suspect, said(verdict)


def gains_nothing(verdict: scoring.Verdict, reason: str) -> None:
    """Assert that a grade credits nothing, refused or suspect, for a reason that matches."""
    if verdict.status == "ok":
        flagged(verdict, reason)
    else:
        refused(verdict, verdict.status, reason)


@contextmanager
def rig(*, cores: tuple[int, ...] = (0,), rung_bytes: int = 2**18, protocol: str = "mw4x5") -> Iterator[Rig]:
    """A judge with secret seeds on a small rung; afterwards it must still serve honest work."""
    settings = config.Judge()
    for track in ("loop_level_reasoning", "scientific_computing"):
        setattr(settings.measurement.denominator, track, "c")
    settings.measurement.credited_protocol = protocol
    settings.timeouts.kernel_s_override = 5.0
    settings.measurement.node_check = "off"
    made = Rig(GradingContext(settings, config.Sizes("tiny", rung_bytes), cores, SEEDS))
    try:
        yield made
        made.serves()
    finally:
        made.context.close()
