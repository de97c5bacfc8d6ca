"""Answers that must not pass: what a submission would hand in that did not do the work, or not all of it.

A fixture is caught when the judge's comparison refuses it on at least one of the inputs, as one wrong call
makes a submission wrong. Where its answer is the right one, bit for bit on every input, it says nothing about
the kernel (``n/a``), unless it stands for no work at all: then the kernel is degenerate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hpcagent_bench.corpus_check.agreement import same
from hpcagent_bench.corpus_check.calls import Array
from hpcagent_bench.corpus_check.draws import Answered, Oracle
from hpcagent_bench.corpus_check.findings import Report
from hpcagent_bench.toolchain.in_process import Arrays

Answer = Callable[[Answered, str], Array | None]
"""The false values of one output on one input, or None where the fixture makes no sense there."""


@dataclass(frozen=True)
class Fixture:
    """One kind of false answer. ``worthless`` ones are never the right answer of a kernel worth having."""

    label: str
    answer: Answer
    worthless: bool = False


def _zeros(item: Answered, output: str) -> Array:
    return np.zeros_like(item.expected[output])


def _ones(item: Answered, output: str) -> Array:
    return np.ones_like(item.expected[output])


def _untouched(item: Answered, output: str) -> Array:
    return item.drawn[output]


def _mean(item: Answered, output: str) -> Array | None:
    right = item.expected[output]
    if right.size < 2 or right.dtype.kind == "b":
        return None
    if right.dtype.kind in "iu":
        return np.full_like(right, int(np.rint(right.mean(dtype=np.float64))))
    return np.full_like(right, right.mean())


def _stale_row(item: Answered, output: str) -> Array | None:
    """The last row (of a vector: element) that is written still holds what it held before."""
    before, right = item.drawn[output], item.expected[output]
    if right.size == 0:
        return None
    changed = np.flatnonzero((before != right).reshape(right.shape[0], -1).any(axis=1))
    if changed.size == 0:
        return None
    stale = right.copy()
    stale[changed[-1]] = before[changed[-1]]
    return stale


def _transposed(item: Answered, output: str) -> Array | None:
    right = item.expected[output]
    if right.ndim < 2 or right.shape[-1] != right.shape[-2] or right.shape[-1] < 2:
        return None
    return np.ascontiguousarray(np.swapaxes(right, -1, -2))


def _permuted(item: Answered, output: str) -> Array | None:
    right = item.expected[output]
    if right.size < 2:
        return None
    return np.random.default_rng(5).permutation(right.reshape(-1)).reshape(right.shape)


def _off_by_one(item: Answered, output: str) -> Array | None:
    """Every element where its neighbour belongs; a single integer is one too large."""
    right = item.expected[output]
    if right.size > 1:
        return np.roll(right.reshape(-1), 1).reshape(right.shape)
    return right + right.dtype.type(1) if right.dtype.kind in "iu" else None


SIMPLE = (
    Fixture("zeros", _zeros, worthless=True),
    Fixture("ones", _ones, worthless=True),
    Fixture("untouched", _untouched, worthless=True),
    Fixture("mean", _mean, worthless=True),
    Fixture("stale row", _stale_row),
    Fixture("transposed", _transposed),
    Fixture("permuted", _permuted),
    Fixture("off by one", _off_by_one),
)


def of_inputs(oracle: Oracle) -> Iterator[Fixture]:
    """Another array's values in place of the output's, for every array that has them in the same form."""
    dtypes = oracle.kernel.dtypes()

    def answer_from(name: str) -> Answer:
        def answer(item: Answered, output: str) -> Array | None:
            given = item.drawn[name]
            fits = given.shape == item.expected[output].shape and dtypes[name] == dtypes[output]
            return given if fits and name != output else None

        return answer

    for name in oracle.kernel.arrays:
        yield Fixture(f"input {name}", answer_from(name))


def of_previous(answered: Sequence[Answered]) -> Fixture:
    """The right answer of another draw of the same sizes and distribution, as a cache would give it."""
    groups: dict[object, list[Answered]] = {}
    for item in answered:
        groups.setdefault((item.case.params, item.case.variant), []).append(item)
    before = {
        id(item): group[index - 1]
        for group in groups.values()
        for index, item in enumerate(group)
        if len(group) > 1
    }

    def answer(item: Answered, output: str) -> Array | None:
        return before[id(item)].expected[output] if id(item) in before else None

    return Fixture("previous draw", answer, worthless=True)


def of_run(label: str, run: Callable[[Answered], Arrays | None]) -> Fixture:
    """What a wrong program computes; it runs once an input."""
    known: dict[int, Arrays | None] = {}

    def answer(item: Answered, output: str) -> Array | None:
        if id(item) not in known:
            known[id(item)] = run(item)
        arrays = known[id(item)]
        return None if arrays is None else arrays[output].astype(item.expected[output].dtype, copy=False)

    return Fixture(label, answer)


def check(oracle: Oracle, answered: Sequence[Answered], fixtures: Sequence[Fixture], report: Report) -> None:
    """Hand every fixture's answer for every output to the comparison, the other outputs being right."""
    for fixture in fixtures:
        for output in oracle.kernel.outputs:
            _check_one(oracle, answered, fixture, output, report)


def _check_one(
    oracle: Oracle, answered: Sequence[Answered], fixture: Fixture, output: str, report: Report
) -> None:
    tried = right = caught = 0
    for item in answered:
        values = fixture.answer(item, output)
        if values is None:
            continue
        tried += 1
        expected = item.expected[output]
        if np.array_equal(values, expected, equal_nan=expected.dtype.kind in "fc"):
            right += 1
        elif same(oracle, item.case, {**item.expected, output: values}, item.expected):
            caught += 1
    check = f"reject: {fixture.label}"
    if caught:
        report.add(check, "ok", f"{output}: caught on {caught} of {tried} inputs")
    elif tried == 0:
        report.add(check, "n/a", f"{output}: makes no sense here")
    elif right == tried and not fixture.worthless:
        report.add(check, "n/a", f"{output}: it is the right answer on every input")
    elif right == tried:
        report.add(
            check,
            "failed",
            f"{output}: it is the right answer on all {tried} inputs",
            "the output says nothing about the work: change the computation or what is drawn",
        )
    else:
        report.add(
            check,
            "failed",
            f"{output}: passes as right on all {tried} inputs, though it differs on {tried - right}",
            "the band is too wide: lower conditioning_atol/conditioning_rtol, or scale the values up",
        )
