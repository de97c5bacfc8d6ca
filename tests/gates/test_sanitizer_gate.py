"""Gate 5: a memory error rejects, undefined behaviour makes suspect, what cannot be applied is noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcagent_bench.harness import anticheat, recording, sandbox
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.runner import build as runner_build
from tests.support.gate_rig import FORTRAN, KERNEL, PYTHON, built, gate, submission, submit, version

GATE = "sanitizers"


@pytest.fixture(autouse=True)
def needs_sanitizers() -> None:
    if not runner_build.sanitizer_available("gcc"):
        pytest.skip("the sanitizers do not work here")


READ_PAST = (
    "double *copy = (double *)malloc(8 * (size_t)LEN_1D); double kept = 0.0;"
    "for (int64_t k = 0; k < LEN_1D; k++) copy[k] = x[k];"
    "for (int64_t k = 0; k {} LEN_1D; k++) kept += ((volatile double *)copy)[k];"
    "((volatile double *)workspace == 0) ? (void)kept : (void)0; free(copy);"
)
OVERFLOW = "volatile int top = INT_MAX; volatile int more = top + (int)(LEN_1D != 0); (void)more;"


def test_a_heap_overflow_that_the_timed_calls_survive_rejects(context: GradingContext) -> None:
    verdict = submit(context, version(before=READ_PAST.format("<=")))
    assert (verdict.status, verdict.solved) == ("incorrect", False)
    assert verdict.reason.startswith("sanitizer: ")
    assert "heap-buffer-overflow" in verdict.reason
    assert all(one.result.correct for one in verdict.inputs)
    assert len(verdict.inputs) == 4


def test_the_honest_twin_passes(context: GradingContext) -> None:
    verdict = submit(context, version(before=READ_PAST.format("<")))
    assert (verdict.status, verdict.reason, verdict.suspicion) == ("ok", "", "")
    assert not any("sanitizers" in note for note in verdict.notes)


@pytest.mark.parametrize("which", ["x[LEN_1D]", "x[-1]"])
def test_reading_beside_an_input_rejects(context: GradingContext, which: str) -> None:
    rejection, _ = gate(
        context,
        GATE,
        version(before=f"volatile double beside = ((volatile double *)x)[{which[2:-1]}]; (void)beside;"),
    )
    assert rejection is not None
    assert rejection.status == "incorrect"
    assert "sanitizer: " in rejection.reason


def test_use_after_free_rejects(context: GradingContext) -> None:
    body = "volatile double *gone = (volatile double *)malloc(64); free((void *)gone); (void)gone[0];"
    rejection, _ = gate(context, GATE, version(before=body))
    assert rejection is not None
    assert "heap-use-after-free" in rejection.reason


def test_undefined_behaviour_is_suspect_and_not_credited(context: GradingContext) -> None:
    verdict = submit(context, version(before=OVERFLOW))
    assert verdict.status == "ok"
    assert verdict.suspicion.startswith("undefined behaviour: ")
    assert "signed integer overflow" in verdict.suspicion
    grade = recording.grade_of(verdict, "submit", context.settings, request_id="r")
    assert (grade.correct, grade.suspect, grade.credited_speedup) == (True, True, None)
    twin = submit(context, version(before=OVERFLOW.replace("INT_MAX", "INT_MAX - 1")))
    assert (twin.status, twin.suspicion) == ("ok", "")


@pytest.mark.parametrize("language", ["cpp", "fortran"])
def test_other_languages_are_sanitized_too(context: GradingContext, language: str) -> None:
    source = FORTRAN if language == "fortran" else version(language="cpp")
    rejection, grading = gate(context, GATE, source, language)
    assert rejection is None
    assert grading.notes == []
    assert grading.sanitized is not None
    if language == "cpp":
        overflow = version(before=READ_PAST.format("<="), language="cpp")
        assert gate(context, GATE, overflow, language)[0] is not None


def test_clang_has_sanitizers_of_its_own(context: GradingContext) -> None:
    if not runner_build.sanitizer_available("llvm"):
        pytest.skip("clang's sanitizers do not work here")
    plain = version(before=READ_PAST.format("<")).replace("#include <omp.h>\n", "")
    rejection, grading = gate(context, GATE, plain, family="llvm")
    assert (rejection, grading.suspicion) == (None, "")
    assert not any("sanitizers" in note for note in grading.notes)
    rejection, _ = gate(
        context, GATE, plain.replace("k < LEN_1D; k++) kept", "k <= LEN_1D; k++) kept"), family="llvm"
    )
    assert rejection is not None
    assert "heap-buffer-overflow" in rejection.reason
    overflow = version(before=OVERFLOW).replace("#include <omp.h>\n", "")
    assert "signed integer overflow" in gate(context, GATE, overflow, family="llvm")[1].suspicion


def test_a_source_that_only_fails_to_build_sanitized_is_noted(context: GradingContext) -> None:
    source = version(head="#ifdef __SANITIZE_ADDRESS__\n#error only without\n#endif\n")
    rejection, grading = gate(context, GATE, source)
    assert rejection is None
    assert len(grading.notes) == 1
    assert grading.notes[0].startswith("sanitizers not applied: the sanitized build failed: ")
    assert "only without" in grading.notes[0]


def test_where_there_are_none_it_is_noted(context: GradingContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_build, "sanitizer_available", lambda family: False)
    rejection, grading = gate(context, GATE, version())
    assert rejection is None
    assert grading.sanitized is None
    assert grading.notes == ["sanitizers not applied: the gcc sanitizers do not work on this host"]


def test_python_and_libraries_are_not_sanitized(context: GradingContext, tmp_path: Path) -> None:
    rejection, grading = gate(context, GATE, PYTHON, "python")
    assert rejection is None
    assert grading.notes == ["sanitizers not applied: python is not compiled"]
    made = sandbox.build(version(), "c", KERNEL.symbol, tmp_path, timeout_s=60)
    with built(context, submission("", library=made.library)) as library:
        assert anticheat.sanitizer_check(library) is None
        assert library.notes == ["sanitizers not applied: a library is not built here"]
