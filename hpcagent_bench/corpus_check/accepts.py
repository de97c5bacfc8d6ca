"""Right answers must pass: the reference rebuilt, reordered and threaded, and the languages among themselves.

Rewrites run on preset S against NumPy and at the laptop rung against the sequential C reference, as the judge
grades. Their largest error is reported as a share of the band: near 1, honest submissions are about to fail.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcagent_bench.corpus_check import agreement, draws
from hpcagent_bench.corpus_check.agreement import Step
from hpcagent_bench.corpus_check.calls import Array, NotBuilt, copies
from hpcagent_bench.corpus_check.draws import Answered, Case, Oracle
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.corpus_check.rewrites import rewrites
from hpcagent_bench.corpus_check.translation import Translation
from hpcagent_bench.toolchain.in_process import Call

SLOW_S = 2.0
"""A sequential reference that needs longer than this at the laptop rung makes every grade there slow."""

LONG_S, PART = 0.5, 8
"""Of one that needs longer than this, rewrites run with an eighth of the bytes instead."""

_TOO_NARROW = (
    "an honest rewrite leaves the band: set conditioning_atol or conditioning_rtol in the manifest, "
    "with the reasoning beside it, or condition the computation better"
)
_GROWS = "it overflows at large sizes: restrict the domain of the inputs or damp the recurrence"
_APART = "the judge's references disagree at a timed size: see hpcagent-bench kernels emit"


@dataclass
class Trial:
    """One rewrite or language on trial: its worst share of the band, its first wrong answer.

    ``moves``: it answered otherwise than the C reference at small sizes, if only in the last bit, or it may
    do so at large ones.
    """

    check: str
    call: Call
    hint: str
    moves: bool
    share: float = 0.0
    wrong: str = ""

    def run(
        self, oracle: Oracle, item: Answered, step: Step, *, copy_inputs: bool = True
    ) -> Mapping[str, Array]:
        step(f"{self.check} at {item.case}")
        work, broken = agreement.run(oracle, self.call, item.case, item.drawn, copy_inputs=copy_inputs)
        share, wrong = agreement.error(oracle, item.case, work, item.expected)
        self.share = max(self.share, share)
        if (broken or wrong) and not self.wrong:
            self.wrong = f"{item.case}: {broken or wrong}"
        return work

    def conclude(self, report: Report) -> None:
        status, hint = ("failed", self.hint) if self.wrong else ("ok", "")
        report.add(self.check, "failed" if status == "failed" else "ok", self.wrong, hint, self.share)


def check(
    oracle: Oracle,
    translation: Translation,
    references: Mapping[str, Call],
    small: Sequence[Answered],
    report: Report,
    step: Step,
    fixtures: Path | None,
) -> None:
    """Try every rewrite, and at the laptop rung the references in ``references`` as well."""
    trials = list(_build(translation, report, step, fixtures))
    first_seeds = [item for item in small if item.case.seed % 100 == draws.SEEDS[0]]
    for item in first_seeds:
        _, base = _reference(oracle, references["c"], item.case, item)
        for trial in trials:
            work = trial.run(oracle, item, step)
            trial.moves = trial.moves or agreement.error(oracle, item.case, work, base.expected)[0] > 0
    others = [
        Trial(f"laptop: {name}", call, _APART, True) for name, call in references.items() if name != "c"
    ]
    _at_laptop(oracle, references["c"], others, [trial for trial in trials if trial.moves], report, step)
    for trial in (*others, *trials):
        trial.conclude(report)


def _build(translation: Translation, report: Report, step: Step, fixtures: Path | None) -> Iterable[Trial]:
    for rewrite in rewrites(translation, fixtures):
        name = f"accept: {rewrite.label}"
        step(f"compiling {rewrite.label}")
        try:
            call = rewrite.make()
        except NotBuilt as error:
            missing = "not on PATH" in str(error)
            report.add(name, "n/a" if missing else "failed", str(error))
            continue
        if call is None:
            report.add(name, "n/a", "no such loops")
        else:
            yield Trial(name, call, _TOO_NARROW, rewrite.large_sizes)


def _reference(
    oracle: Oracle, call: Call, case: Case, item: Answered | None = None
) -> tuple[float, Answered]:
    """What the C reference answers, as an input to compare with, and how long its call computed."""
    drawn = draws.draw(oracle.kernel, case) if item is None else item.drawn
    work = {**drawn, **copies({name: drawn[name] for name in oracle.kernel.outputs})}
    started = time.thread_time()
    call(work, case.values)
    seconds = time.thread_time() - started
    return seconds, Answered(case, drawn, {name: work[name] for name in oracle.kernel.outputs})


def _at_laptop(
    oracle: Oracle,
    reference: Call,
    languages: Sequence[Trial],
    moving: Sequence[Trial],
    report: Report,
    step: Step,
) -> None:
    """Languages on one input a configuration, rewrites on the first, against sequential C."""
    slowest = 0.0
    for index, case in enumerate(draws.laptop_cases(oracle.kernel)):
        step(f"c at {case}")
        seconds, item = _reference(oracle, reference, case)
        slowest = max(slowest, seconds)
        for name, values in item.expected.items():
            if not np.isfinite(values).all():
                report.add(f"laptop: output {name}", "failed", f"NaN or infinity at {case}", _GROWS)
        for trial in languages:
            trial.run(oracle, item, step, copy_inputs=False)
        if index == 0 and moving:
            if seconds > LONG_S:
                _, item = _reference(oracle, reference, draws.laptop_cases(oracle.kernel, PART)[0])
            for trial in moving:
                trial.run(oracle, item, step, copy_inputs=False)
    if slowest > SLOW_S:
        detail = f"C takes {slowest:.1f} s a call at the laptop rung"
        report.add("laptop: time", "note", detail, "choose a smaller XL")
