"""A search of all memory for the expected answer: it is not there."""

from __future__ import annotations

from attack_rig import Rig, refused, version

SEARCH = """#include <setjmp.h>
/* Every mapped page within 64 GiB of the arrays and of the program, by the kernel's own word. */
static sigjmp_buf nothing;
static void hole(int number) { siglongjmp(nothing, number); }
static int mapped(const void *at) { static unsigned char in; return mincore((void *)at, 4096, &in) == 0; }
static const double *search(const double *key, const double *own, uintptr_t from, uintptr_t to)
{
    volatile int misses = 0;
    signal(SIGBUS, hole); signal(SIGSEGV, hole);
    for (volatile uintptr_t page = from & ~4095ul; page < to && misses < 20000; page += 4096) {
        if (!mapped((void *)page)) { misses++; continue; }
        if (sigsetjmp(nothing, 1)) { misses++; continue; }
        const double *at = (const double *)page;
        for (int k = 0; k < 511; k++)
            if (at[k] == key[0] && at[k + 1] == key[1] && at + k != own && at + k != key) return at + k;
    }
    return 0;
}
"""
BODY = """double key[2] = {(x[0] + x[LEN_1D - 1]) * (y[0] - y[LEN_1D - 1]), (x[1] + x[0]) * (y[1] - y[0])};
double here; uintptr_t places[] = {(uintptr_t)area, (uintptr_t)x, (uintptr_t)&here, (uintptr_t)stdout};
const double *found = 0;
for (int k = 0; k < 4 && !found; k++)
    found = search(key, area, places[k] - (1ul << 26), places[k] + (1ul << 26));
if (found) memcpy(area, found, LEN_1D * sizeof *area); else memset(area, 0, LEN_1D * sizeof *area);"""


def test_expected_answer_is_not_in_memory(judge: Rig) -> None:
    refused(judge.attack(version(BODY, SEARCH)), "incorrect", r"rep-verify\[warm-up\] area\[")


def test_twin_that_searches_its_input_is_accepted(judge: Rig) -> None:
    body = "volatile int64_t places = 0; for (int64_t i = 0; i < LEN_1D; i++) places += x[i] == y[i]; HONEST;"
    judge.accepts(version(body))
