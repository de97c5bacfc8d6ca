"""Inputs taken to have a structure that the kernel does not promise: every draw must break it."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

ASSUMED = {
    "diagonal": (
        "gemm",
        "for (int64_t i = 0; i < NI; i++) for (int64_t j = 0; j < NJ; j++)\n"
        "c[i * NJ + j] = beta * c[i * NJ + j] + (i < NK ? alpha * a[i * NK + i] * b[i * NJ + j] : 0);",
    ),
    "symmetric": (
        "floyd_warshall",
        "for (int64_t i = 0; i < N; i++)\n"
        "    for (int64_t j = 0; j < i; j++) d[i * N + j] = d[j * N + i];\nHONEST;",
    ),
    "sorted": (
        "stable_partition",
        "int64_t low = 0; while (low < LEN_1D && key[low] < 0.25) low++;\n"
        "split[0] = low; memcpy(out, x, LEN_1D * sizeof *out);",
    ),
    "positive": (
        "tsvc_2_s3111",
        "double sum = 0; for (int64_t i = 0; i < LEN_1D; i++) sum += a[i]; b[0] = sum;",
    ),
    "constant mean": ("tsvc_2_s311", "sum_out[0] = a[0] * LEN_1D;"),
    "known mean": ("tsvc_2_s311", "sum_out[0] = 0.5 * LEN_1D;"),
    "identity permutation": (
        "gather_scale_scatter",
        "for (int64_t i = 0; i < LEN_1D; i++) y[i] = w[i] * x[i];",
    ),
    "a permutation that is its own inverse": (
        "gather_scale_scatter",
        "for (int64_t i = 0; i < LEN_1D; i++) y[take[i]] = w[i] * x[put[i]];",
    ),
}
TWINS = {
    "gemm": "for (int64_t i = 0; i < NI; i++) for (int64_t j = 0; j < NJ; j++) { double sum = 0;\n"
    "for (int64_t k = 0; k < NK; k++) sum += a[i * NK + k] * b[k * NJ + j];\n"
    "c[i * NJ + j] = beta * c[i * NJ + j] + alpha * sum; }",
    "tsvc_2_s3111": "double sum = 0; for (int64_t i = 0; i < LEN_1D; i++) sum += a[i] > 0 ? a[i] : 0;\n"
    "b[0] = sum;",
    "gather_scale_scatter": "for (int64_t i = LEN_1D - 1; i >= 0; i--) y[put[i]] = x[take[i]] * w[i];",
}


@pytest.mark.parametrize("name", ASSUMED)
def test_assumed_structure_is_refused(judge: Rig, name: str) -> None:
    kernel, body = ASSUMED[name]
    refused(judge.attack(version(body, kernel=kernel), kernel=kernel), "incorrect", r"rep-verify\[warm-up\]")


@pytest.mark.parametrize("kernel", TWINS)
def test_twin_that_assumes_nothing_is_accepted(judge: Rig, kernel: str) -> None:
    judge.accepts(version(TWINS[kernel], kernel=kernel), kernel=kernel)
