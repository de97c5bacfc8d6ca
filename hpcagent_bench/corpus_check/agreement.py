"""Whether a reference in some language answers like NumPy, within the band the judge would grade with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hpcagent_bench.corpus import precision
from hpcagent_bench.corpus.precision import Tolerance, Ungradeable
from hpcagent_bench.corpus_check.calls import Array, guarded_copies, identical
from hpcagent_bench.corpus_check.draws import Answered, Case, Oracle
from hpcagent_bench.toolchain.in_process import Arrays, Call

Step = Callable[[str], None]
"""Told what is being done, so that a crash can be explained."""


def same(oracle: Oracle, case: Case, produced: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
    """Empty when every output agrees with the expected one, else what the judge would say first."""
    for name in oracle.kernel.outputs:
        if expected[name].size == 0:
            continue
        tolerance = oracle.tolerance(name, case)
        found = precision.compare(produced[name], expected[name], tolerance, threads=1, name=name)
        if not found.ok:
            return found.detail
    return ""


def error(
    oracle: Oracle, case: Case, produced: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[float, str]:
    """The largest error of any element over what the band allows there, and what the judge would say first.

    1 is the edge of the band, 0 equal to the bit, infinite where no band helps; the text is empty within it.
    """
    largest, wrong = 0.0, ""
    for name in oracle.kernel.outputs:
        if expected[name].size == 0:
            continue
        tolerance = oracle.tolerance(name, case)
        found = precision.compare(produced[name], expected[name], tolerance, threads=1, name=name)
        wrong = wrong or found.detail
        if found.max_abs_error > 0:
            largest = max(largest, _share(produced[name], expected[name], tolerance))
    return largest, wrong


def _share(got: Array, wanted: Array, tolerance: Tolerance) -> float:
    if wanted.dtype.kind in "iub":
        return np.inf
    finite = np.isfinite(wanted)
    if not finite.all():
        if not np.array_equal(np.where(finite, 0, got), np.where(finite, 0, wanted), equal_nan=True):
            return np.inf
        got, wanted = got[finite], wanted[finite]
    size = np.abs(wanted)
    allowed = tolerance.effective_atol(float(size.max(initial=0.0))) + tolerance.rtol * size
    return float((np.abs(got - wanted) / allowed).max(initial=0.0))


def run(
    oracle: Oracle, call: Call, case: Case, drawn: Arrays, *, copy_inputs: bool = True
) -> tuple[Arrays, str]:
    """Call on copies: the arrays afterwards, and what was done that no reference may do (or nothing).

    Large inputs need no copies where the same call left small ones alone.
    """
    outputs = oracle.kernel.outputs
    copied = drawn if copy_inputs else {name: drawn[name] for name in outputs}
    copies, overrun = guarded_copies(copied)
    work = {**drawn, **copies}
    call(work, case.values)
    broken = overrun()
    if broken is not None:
        return work, f"writes outside of {broken}"
    for name, array in copied.items():
        if name not in outputs and not identical(array, work[name]):
            return work, f"changes {name}, which is no output"
    return work, ""


def check(
    oracle: Oracle, call: Call, answered: Iterable[Answered], label: str, step: Step = lambda text: None
) -> str:
    """Run every case; the first disagreement as text, empty when there is none."""
    for item in answered:
        step(f"{label} at {item.case}")
        try:
            work, broken = run(oracle, call, item.case, item.drawn)
            wrong = broken or same(oracle, item.case, work, item.expected)
        except Ungradeable as error:
            wrong = str(error)
        if wrong:
            return f"{item.case}: {wrong}"
    return ""
