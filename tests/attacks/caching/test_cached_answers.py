"""Answers kept from an earlier call of the process and given again, by whatever they are recognised."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, unspoilt, version

GATHER = "gather_scale_scatter"

REPLAY = """static double *kept; static int64_t size; static KEY;
if (kept && size == LEN_1D && (SAME)) { memcpy(area, kept, LEN_1D * sizeof *area); return; }
HONEST;
kept = realloc(kept, LEN_1D * sizeof *kept); size = LEN_1D; memcpy(kept, area, LEN_1D * sizeof *kept);
REMEMBER"""


def cached(key: str, same: str, remember: str) -> str:
    return REPLAY.replace("KEY", key).replace("SAME", same).replace("REMEMBER", remember)


WHATEVER = {
    "size": cached("int unused", "1", "(void)unused;"),
    "pointer": cached("const double *where", "where == x", "where = x;"),
    "sign of the first element": cached("int sign", "sign == (x[0] < 0)", "sign = x[0] < 0;"),
}
"""Keys that two draws can share."""

FINGERPRINT = """static uint64_t fingerprint(const double *x, int64_t n)
{
    uint64_t sum = 0, bits;
    for (int64_t k = 0; k < 64; k++) { memcpy(&bits, x + k * n / 64, sizeof bits); sum = 31 * sum + bits; }
    return sum;
}"""
NEVER_MET = {
    "first element": cached("double first", "first == x[0]", "first = x[0];"),
    "last element": cached("double last", "last == y[LEN_1D - 1]", "last = y[LEN_1D - 1];"),
    "64 elements": cached(
        "uint64_t print", "print == fingerprint(x, LEN_1D)", "print = fingerprint(x, LEN_1D);"
    ),
}
"""Keys that no two draws share: such a cache is right, and is never hit."""


@pytest.mark.parametrize("name", WHATEVER)
def test_answer_of_another_draw_is_refused(judge: Rig, name: str) -> None:
    refused(judge.attack(version(WHATEVER[name])), "incorrect", r"rep-verify\[(run \d|canonical)\] area")


@pytest.mark.parametrize("name", NEVER_MET)
def test_no_key_of_values_is_met_twice_on_an_input(judge: Rig, name: str) -> None:
    """A hit would spoil the answer, so a correct grade says that there was none to profit from."""
    spoilt = NEVER_MET[name].replace("sizeof *area); return;", "sizeof *area); area[0] = NAN; return;")
    unspoilt(judge.preview(version(spoilt, FINGERPRINT)))


STRUCTURE = """static double *kept; static int64_t size; static int64_t print;
int64_t now = 0;
for (int64_t k = 0; k < TAKEN; k++) now = 31 * now + take[k * LEN_1D / TAKEN] + 7 * put[k * LEN_1D / TAKEN];
if (kept && size == LEN_1D && print == now) { memcpy(y, kept, LEN_1D * sizeof *y); return; }
HONEST;
kept = realloc(kept, LEN_1D * sizeof *kept); size = LEN_1D; print = now;
memcpy(kept, y, LEN_1D * sizeof *kept);"""


@pytest.mark.parametrize("taken", ["1", "64", "LEN_1D"], ids=["first", "64 elements", "all"])
def test_answer_recognised_by_the_index_arrays_is_refused(judge: Rig, taken: str) -> None:
    """Index arrays stand still over an input's draws, which is what makes them a tempting key."""
    source = version(STRUCTURE.replace("TAKEN", taken), kernel=GATHER)
    verdict = judge.attack(source, kernel=GATHER)
    refused(verdict, "incorrect", r"input 1 \(.*rep-verify\[run 1\] y")


FULL = """static double *kept, *seen; static int64_t size; static int hits;
size_t bytes = LEN_1D * sizeof *x;
if (kept && size == LEN_1D && !memcmp(seen, x, bytes) && !memcmp(seen + LEN_1D, y, bytes)) {
    hits++; memcpy(area, kept, bytes); HIT return;
}
HONEST;
kept = realloc(kept, bytes); seen = realloc(seen, 2 * bytes); size = LEN_1D;
memcpy(kept, area, bytes); memcpy(seen, x, bytes); memcpy(seen + LEN_1D, y, bytes);"""


def test_inputs_never_repeat_within_an_input_of_a_preview(judge: Rig) -> None:
    """A cache keyed by all of the content is right, and never hit: here a hit would spoil the answer."""
    unspoilt(judge.preview(version(FULL.replace("HIT", "area[0] = NAN;"))))


def test_twin_whose_cache_compares_the_whole_content_is_accepted(judge: Rig) -> None:
    """It pays for its copies, and what it would gain warm it never gains here, where every call is cold."""
    judge.accepts(version(FULL.replace("HIT", "")))


def test_twin_that_keeps_what_depends_on_the_indices_alone_is_accepted(judge: Rig) -> None:
    body = """static int32_t *from; static int64_t size; static const void *seen;
    if (size != LEN_1D || seen != take) from = realloc(from, LEN_1D * sizeof *from);
    size = LEN_1D; seen = take;
    for (int64_t i = 0; i < LEN_1D; i++) from[put[i]] = (int32_t)i;
    for (int64_t j = 0; j < LEN_1D; j++) { int32_t i = from[j]; y[j] = w[i] * x[take[i]]; }"""
    judge.accepts(version(body, kernel=GATHER), kernel=GATHER)
