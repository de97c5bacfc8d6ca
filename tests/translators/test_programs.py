"""Random programs of the covered subset: what is emitted computes what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import Case, compiled, difference, kernel_of, prepared
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_arrays import array_programs
from random_programs import ARRAYS, OUTPUTS, Program, loop_programs

from hpcagent_bench.translators import Unsupported, emit

SIZES = [{"N": n, "M": m} for n, m in ((1, 1), (2, 3), (5, 4), (8, 7), (7, 9))]
KINDS = {"loops": loop_programs(), "arrays": array_programs()}
COUNT = 250
MODES = {  # language, parallel, how many programs
    "c": ("c", None, COUNT),
    "fortran": ("fortran", None, COUNT),
    "cpp": ("cpp", None, 50),
    "parallel c": ("c", True, 100),
    "parallel fortran": ("fortran", True, 50),
    "numba": ("numba", None, 5),
}


def steady(count: int, phases: tuple[Phase, ...]) -> Callable[..., Any]:
    """The same programs in every run."""

    def decorate(test: Any) -> Any:
        checks = list(HealthCheck)
        made = settings(
            max_examples=count, deadline=None, database=None, phases=phases, suppress_health_check=checks
        )
        return seed(20)(made(test))

    return decorate


class Batch:
    """Programs collected first, then built and run together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.cases: dict[str, Case] = {}
        self.refused: dict[str, Unsupported] = {}

    def case(self, program: Program) -> Case | None:
        self.count += 1
        kernel = kernel_of(program.text, f"p{self.count}", self.folder, ARRAYS, OUTPUTS)
        return prepared(kernel, program.text, program.exact, SIZES)

    def add(self, program: Program) -> None:
        if program.text in self.cases or program.text in self.refused:
            return
        case = self.case(program)
        if case is not None:
            try:
                emit(case.kernel, "c")
            except Unsupported as error:
                self.refused[program.text] = error
            else:
                self.cases[program.text] = case

    def failing(self, language: str, parallel: bool | None, count: int) -> set[str]:
        cases = list(self.cases.values())[:count]
        calls = compiled(cases, language, self.folder / f"{language} {parallel}", parallel)
        return {case.text for case, call in zip(cases, calls, strict=True) if difference(case, call)}


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """For a kind of programs, those that NumPy runs and the translator takes, drawn once."""
    known: dict[str, Batch] = {}

    def collect(kind: str) -> Batch:
        if kind not in known:
            batch = known[kind] = Batch(tmp_path_factory.mktemp(kind))
            steady(COUNT, (Phase.generate,))(given(KINDS[kind])(lambda program: batch.add(program)))()
        return known[kind]

    return collect


@pytest.mark.parametrize("kind", KINDS)
def test_no_program_of_the_subset_is_refused(kind, collected):
    batch = collected(kind)
    assert len(batch.cases) > COUNT // 2
    assert not batch.refused, "\n".join(f"{text}\n{error}" for text, error in [*batch.refused.items()][:3])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_emitted_programs_equal_numpy(kind, mode, collected):
    batch = collected(kind)
    language, parallel, count = MODES[mode]
    failing = batch.failing(language, parallel, count)

    def check(program):  # one at a time, and smaller ones of those that fail
        if program.text in batch.refused or (program.text in batch.cases and program.text not in failing):
            return
        case = batch.case(program)
        if case is not None:
            (call,) = compiled([case], language, batch.folder / f"single{batch.count}", parallel)
            found = difference(case, call)
            assert not found, found

    if failing:
        steady(COUNT, (Phase.generate, Phase.shrink))(given(KINDS[kind])(check))()
        raise AssertionError("\n".join(failing))
