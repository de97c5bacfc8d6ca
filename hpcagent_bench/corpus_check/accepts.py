"""Answers that must pass: the same computation by other compilers, in other orders, on several threads.

Each runs on preset S against NumPy and at the laptop rung against the sequential C reference, as the judge
grades. Its largest error is reported as a share of the band: near 1, honest submissions are about to fail.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import translators
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.corpus_check import agreement, draws
from hpcagent_bench.corpus_check.agreement import Step, share_of_band
from hpcagent_bench.corpus_check.calls import Call, NotBuilt, copies, native_call
from hpcagent_bench.corpus_check.draws import Answered, Oracle
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.toolchain import flags

SLOW_S = 2.0
"""A sequential reference that needs longer than this at the laptop rung makes every grade there slow."""


@dataclass(frozen=True)
class Variant:
    """Another honest way to compute the kernel; ``make`` builds it, or gives None where there is none."""

    label: str
    make: Callable[[], Call | None]


def variants(oracle: Oracle, fixtures: Path | None) -> Iterator[Variant]:
    """Everything that must pass, compiled lazily."""
    kernel = oracle.kernel
    source = translators.emit(kernel, "c")
    for label, (family, extra) in flags.REBUILDS.items():

        def rebuild(family: str = family, extra: tuple[str, ...] = extra) -> Call:
            return native_call(kernel, source, "c", family=family, extra=extra)

        yield Variant(label, rebuild)
    for path in hand_written(kernel, fixtures):

        def fixture(path: Path = path) -> Call:
            return native_call(kernel, path.read_text(encoding="utf-8"), "c")

        yield Variant(path.name, fixture)


def hand_written(kernel: Kernel, fixtures: Path | None) -> list[Path]:
    """``<kernel>_<what>.c`` in the folder of fixtures, those that define the kernel's symbol."""
    if fixtures is None:
        return []
    symbol = re.compile(rf"\b{kernel.symbol}\b")
    found = sorted(fixtures.glob(f"{kernel.name}_*.c"))
    return [path for path in found if symbol.search(path.read_text(encoding="utf-8"))]


def check(
    oracle: Oracle,
    references: Mapping[str, Call],
    small: Sequence[Answered],
    report: Report,
    step: Step,
    fixtures: Path | None,
) -> None:
    """Run every variant, and the references among themselves at the laptop rung."""
    built: dict[str, Call] = {}
    for variant in variants(oracle, fixtures):
        step(f"compiling {variant.label}")
        try:
            call = variant.make()
        except NotBuilt as error:
            missing = "not on PATH" in str(error)
            report.add(f"accept: {variant.label}", "n/a" if missing else "failed", str(error))
            continue
        if call is None:
            report.add(f"accept: {variant.label}", "n/a", "nothing here to reorder")
        else:
            built[variant.label] = call
    shares = dict.fromkeys(built, 0.0)
    wrong: dict[str, str] = {}
    for item in small:
        if item.case.seed == draws.SEEDS[0]:
            _compare(oracle, built, item, shares, wrong, step)
    _at_laptop(oracle, references, built, shares, wrong, report, step)
    for label, share in shares.items():
        bad = wrong.get(label, "")
        report.add(f"accept: {label}", "failed" if bad else "ok", bad, _TOO_NARROW if bad else "", share)


_TOO_NARROW = (
    "an honest rewrite leaves the band: set conditioning_atol or conditioning_rtol in the manifest, "
    "with the reasoning beside it, or condition the computation better"
)
_APART = "the two references of the judge disagree at a timed size: see both with hpcagent-bench kernels emit"


def _compare(
    oracle: Oracle,
    calls: Mapping[str, Call],
    item: Answered,
    shares: dict[str, float],
    wrong: dict[str, str],
    step: Step,
) -> None:
    """Run each of ``calls`` on one input; ``shares`` keeps the worst, ``wrong`` the first bad outcome."""
    for label, call in calls.items():
        step(f"{label} at {item.case}")
        work, broken = agreement.run(oracle, call, item.case, item.drawn)
        shares[label] = max(shares[label], share_of_band(oracle, item.case, work, item.expected))
        outcome = broken or agreement.same(oracle, item.case, work, item.expected)
        if outcome:
            wrong.setdefault(label, f"{item.case}: {outcome}")


def _at_laptop(
    oracle: Oracle,
    references: Mapping[str, Call],
    built: Mapping[str, Call],
    shares: dict[str, float],
    wrong: dict[str, str],
    report: Report,
    step: Step,
) -> None:
    """The other languages and the variants against sequential C, one input a configuration."""
    others = {f"laptop: {name}": call for name, call in references.items() if name != "c"}
    found = dict.fromkeys([*others, *built], 0.0)
    failed: dict[str, str] = {}
    slowest = 0.0
    for case in draws.laptop_cases(oracle.kernel):
        step(f"drawing {case}")
        drawn = draws.draw(oracle.kernel, case)
        work = copies(drawn)
        started = time.perf_counter()
        step(f"c at {case}")
        references["c"](work, case.values)
        slowest = max(slowest, time.perf_counter() - started)
        item = Answered(case, drawn, {name: work[name] for name in oracle.kernel.outputs})
        _compare(oracle, {**others, **built}, item, found, failed, step)
    for label in others:
        bad = failed.get(label, "")
        report.add(label, "failed" if bad else "ok", bad, _APART if bad else "", found[label])
    for label in built:
        shares[label] = max(shares[label], found[label])
        if label in failed:
            wrong.setdefault(label, failed[label])
    if slowest > SLOW_S:
        detail = f"C takes {slowest:.1f} s a call at the laptop rung"
        report.add("laptop: time", "note", detail, "choose a smaller XL")
