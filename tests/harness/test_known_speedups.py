"""A kernel slowed by a known factor: how near the measured ratio comes to it (run by make bench)."""

import os
import re

import pytest

from hpcagent_bench import config, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission

KERNEL = "nonuniform_dft"
"""It computes: 96 KB of inputs keep a core busy for tens of milliseconds, and again changes nothing."""
ALLOWED = 0.03


def repeated(times: int) -> str:
    """The reference, its whole work done ``times`` times in a call."""
    kernel = spec.load(KERNEL)
    source = translators.emit(kernel, "c")
    head = re.search(rf"void {kernel.symbol}\((.*?)\)\s*\{{", source, re.DOTALL)
    assert head is not None
    names = ", ".join(part.split()[-1].lstrip("*") for part in head[1].split(","))
    work = source.replace(f"void {kernel.symbol}(", "static __attribute__((noinline)) void work(")
    body = "\n".join([f'work({names}); __asm__ volatile("" ::: "memory");'] * times)
    return f"{work}\nvoid {kernel.symbol}({head[1]})\n{{\n{body}\n}}\n"


@pytest.mark.bench
@pytest.mark.parametrize("stamp", ["mw4x5", "mwp4x5"])
def test_known_slow_downs(stamp: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config.Judge()
    settings.measurement.denominator.scientific_computing = "c"
    settings.measurement.credited_protocol = stamp
    settings.measurement.node_check = "off"
    settings.timeouts.guillotine_factor = 0  # three times the work is not to be stopped
    core = max(os.sched_getaffinity(0))  # the judge itself works on the others
    context = GradingContext(settings, config.Sizes("bench", 96 * 2**10), (core,), GradingSeeds(1, 2, 3))
    lines = []
    for times in (1, 2, 3):
        verdict = grade_under.submit_grade(context, Submission(spec.load(KERNEL), "c", repeated(times)))
        assert verdict.correct, verdict.reason
        found = [i.result.reduction for i in verdict.inputs if i.result.reduction is not None]
        errors = [r.ratio * times - 1 for r in found]
        within = sum(abs(error) <= ALLOWED for error in errors)
        told = " ".join(f"{error:+.2%}" for error in errors)
        call = min(r.baseline for r in found) / 1e6
        lines.append(f"{stamp} work x{times}: {told}  ({within} of 4 within 3 %, reference {call:.0f} ms)")
    context.close()
    with capsys.disabled():
        print("\n" + "\n".join(lines))
