"""Outputs left as they were, in all but one row: what an earlier call left in the buffer must not count."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

KERNEL = "rim_peeled_stencil"
KEEP = """static double *kept;
if (!kept) kept = malloc(LEN_2D * sizeof *kept);
memcpy(kept, out + (ROW) * LEN_2D, LEN_2D * sizeof *kept);
HONEST;
memcpy(out + (ROW) * LEN_2D, kept, LEN_2D * sizeof *kept);"""


@pytest.mark.parametrize("row", ["0", "LEN_2D / 2", "LEN_2D - 1"])
def test_one_row_left_untouched_is_refused(judge: Rig, row: str) -> None:
    source = version(KEEP.replace("ROW", row), kernel=KERNEL)
    refused(judge.attack(source, kernel=KERNEL), "incorrect", r"rep-verify\[warm-up\] out\[")


def test_row_right_once_and_then_left_to_stand_is_refused(judge: Rig) -> None:
    """The buffer is the same one in every call: what stands in it is not the last call's answer."""
    body = "static int calls; if (calls++ == 0) HONEST; else {" + KEEP.replace("ROW", "LEN_2D - 1") + "}"
    refused(
        judge.attack(version(body, kernel=KERNEL), kernel=KERNEL), "incorrect", r"rep-verify\[run 1\] out\["
    )


def test_twin_that_writes_its_rows_backwards_is_accepted(judge: Rig) -> None:
    body = """for (int64_t i = LEN_2D - 1; i >= 0; i--)
    for (int64_t j = LEN_2D - 1; j >= 0; j--) {
        out[i * LEN_2D + j] = a[i * LEN_2D + j];
        if (i == 0 || j == 0 || i == LEN_2D - 1 || j == LEN_2D - 1) continue;
        out[i * LEN_2D + j] = 0.2 * (a[i * LEN_2D + j] + a[(i - 1) * LEN_2D + j] + a[(i + 1) * LEN_2D + j]
            + a[i * LEN_2D + j - 1] + a[i * LEN_2D + j + 1]);
    }"""
    judge.accepts(version(body, kernel=KERNEL), kernel=KERNEL)
