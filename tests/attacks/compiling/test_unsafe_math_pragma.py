"""Pragmas that allow value-changing arithmetic: the submission's choice, noted, judged by results."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, said, version

UNSAFE = {
    "pragma": '#pragma GCC optimize("fast-math")',
    "attribute": 'static __attribute__((optimize("Ofast"), unused)) double f(double v) { return v + 1; }',
    "contraction": "#pragma STDC FP_CONTRACT ON",
    "associative": '#pragma GCC optimize("associative-math", "no-signed-zeros")',
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_arithmetic_within_the_band_is_accepted_and_noted(judge: Rig, name: str) -> None:
    verdict = judge.accepts(version("HONEST;", UNSAFE[name]))
    if name != "contraction":
        assert any("math" in note for note in verdict.notes), said(verdict)


def test_arithmetic_outside_the_band_is_refused_whatever_allowed_it(judge: Rig) -> None:
    coarse = "HONEST; for (int64_t i = 0; i < LEN_1D; i++) area[i] = (float)area[i];"
    refused(judge.attack(version(coarse, UNSAFE["pragma"])), "incorrect", r"rep-verify\[warm-up\] area")


def test_twin_without_them_has_no_such_note(judge: Rig) -> None:
    assert not any("math" in note for note in judge.accepts(version("HONEST;")).notes)
