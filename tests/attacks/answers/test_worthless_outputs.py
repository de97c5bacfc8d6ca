"""Answers that are no work: a constant, an input, zeros, what was there before, the mean."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

ANSWERS = {
    "constant": "for (int64_t i = 0; i < LEN_1D; i++) area[i] = 0.5;",
    "zeros": "memset(area, 0, LEN_1D * sizeof *area);",
    "copied input": "memcpy(area, x, LEN_1D * sizeof *area);",
    "untouched": "(void)area;",
    "no numbers": "for (int64_t i = 0; i < LEN_1D; i++) area[i] = NAN;",
    "infinity": "for (int64_t i = 0; i < LEN_1D; i++) area[i] = INFINITY;",
    "mean": "HONEST; double mean = 0; for (int64_t i = 0; i < LEN_1D; i++) mean += area[i] / LEN_1D;"
    "for (int64_t i = 0; i < LEN_1D; i++) area[i] = mean;",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answer_without_work_is_refused_at_the_first_call(judge: Rig, name: str) -> None:
    refused(judge.attack(version(ANSWERS[name])), "incorrect", r"input 1 \(.*rep-verify\[warm-up\] area")


def test_twin_that_writes_zeros_before_the_work_is_accepted(judge: Rig) -> None:
    judge.accepts(version(ANSWERS["zeros"] + "HONEST;"))
