"""Floating-point modes changed for whoever comes next: put right before every call, and told."""

from __future__ import annotations

import platform

import pytest
from attack_rig import Rig, refused, said, version

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names a register of x86-64")

SET = "#include <immintrin.h>\nstatic void set(unsigned bits) { _mm_setcsr(_mm_getcsr() | bits); }\n"
FLUSH, UPWARD = "0x8040", "0x4000"


def noted(judge: Rig, source: str) -> str:
    """Everything the grade says besides its verdict, of a source that must pass."""
    verdict = judge.attack(source)
    assert verdict.status == "ok", said(verdict)
    return " ".join([*verdict.notes, verdict.suspicion, *(i.suspect + i.note for i in verdict.inputs)])


@pytest.mark.parametrize("mode", [FLUSH, UPWARD], ids=["flush to zero", "rounding"])
def test_modes_set_by_a_constructor_are_restored_and_told(judge: Rig, mode: str) -> None:
    """Not restored, every call after it would start with the modes changed, and spoil its answer."""
    before = SET + f"__attribute__((constructor)) static void first(void) {{ set({mode}); }}\n"
    text = noted(judge, version(f"if (_mm_getcsr() & {mode}) area[0] = NAN; else HONEST;", before))
    assert "modes" in text


@pytest.mark.parametrize("mode", [FLUSH, UPWARD], ids=["flush to zero", "rounding"])
def test_modes_left_changed_by_a_call_are_restored_and_told(judge: Rig, mode: str) -> None:
    body = f"if (_mm_getcsr() & {mode}) {{ area[0] = NAN; return; }} HONEST; set({mode});"
    assert "modes" in noted(judge, version(body, SET))


def test_work_done_with_changed_rounding_is_refused_by_the_band(judge: Rig) -> None:
    kernel = "cholesky"
    body = f"set({FLUSH} | 0x6000); HONEST; a[0] = (float)a[0];"
    verdict = judge.attack(version(body, SET, kernel), kernel=kernel)
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] a\[")


def test_twin_that_restores_the_modes_it_changes_is_accepted(judge: Rig) -> None:
    body = f"unsigned before = _mm_getcsr(); set({FLUSH}); HONEST; _mm_setcsr(before);"
    verdict = judge.accepts(version(body, SET))
    assert not any(one.result.runs.fp_modes for one in verdict.inputs)


@pytest.mark.parametrize(
    "line",
    [
        '#pragma GCC optimize("Ofast")\n',
        '#pragma GCC optimize("fast-math")\n',
        '__attribute__((optimize("fast-math"))) static void unused(void) {}\n',
    ],
)
def test_twin_with_an_unsafe_math_pragma_is_accepted_and_noted(judge: Rig, line: str) -> None:
    """Results decide, not style: the band is the judge of unsafe mathematics."""
    verdict = judge.accepts(line + version("HONEST;"))
    assert any("unsafe-math" in note for note in verdict.notes), verdict.notes
