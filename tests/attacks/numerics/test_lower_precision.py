"""Work done in fewer digits than asked for."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

LOWER = {
    "float": "for (int64_t i = 0, p = LEN_1D - 1; i < LEN_1D; p = i++)\n"
    "    area[i] = ((float)x[i] + (float)x[p]) * ((float)y[i] - (float)y[p]);",
    "float at the end": "HONEST; for (int64_t i = 0; i < LEN_1D; i++) area[i] = (float)area[i];",
    "half of the digits": "HONEST; for (int64_t i = 0; i < LEN_1D; i++) area[i] *= 1 + 1e-8;",
    "one element": "HONEST; area[LEN_1D / 2] = (float)area[LEN_1D / 2];",
}


@pytest.mark.parametrize("name", LOWER)
def test_lower_precision_is_refused(judge: Rig, name: str) -> None:
    refused(judge.attack(version(LOWER[name])), "incorrect", r"rep-verify\[warm-up\] area\[")


def test_float_sum_of_a_long_vector_is_refused(judge: Rig) -> None:
    body = "float sum = 0; for (int64_t i = 0; i < LEN_1D; i++) sum += a[i]; sum_out[0] = sum;"
    verdict = judge.attack(version(body, kernel="tsvc_2_s311"), kernel="tsvc_2_s311")
    refused(verdict, "incorrect", r"rep-verify\[warm-up\] sum_out")


def test_twin_in_higher_precision_is_accepted(judge: Rig) -> None:
    body = "long double sum = 0; for (int64_t i = 0; i < LEN_1D; i++) sum += a[i]; sum_out[0] = sum;"
    judge.accepts(version(body, kernel="tsvc_2_s311"), kernel="tsvc_2_s311")


def test_twin_that_sums_in_another_order_is_accepted(judge: Rig) -> None:
    body = """double sum[4] = {0}; int64_t i = 0;
    for (; i + 4 <= LEN_1D; i += 4) for (int k = 0; k < 4; k++) sum[k] += a[i + k];
    for (; i < LEN_1D; i++) sum[0] += a[i];
    sum_out[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);"""
    judge.accepts(version(body, kernel="tsvc_2_s311"), kernel="tsvc_2_s311")
