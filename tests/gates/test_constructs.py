"""Notes about a source: what is found, what is not mistaken for it, and that nothing is refused for it."""

from __future__ import annotations

import time

import pytest

from hpcagent_bench.harness.building import constructs
from hpcagent_bench.harness.context import GradingContext
from tests.support.gate_rig import submit, version

FOUND = {
    '#pragma GCC optimize ("fast-math")': "unsafe-math pragma or attribute (line 1)",
    "\n#pragma STDC FP_CONTRACT ON": "unsafe-math pragma or attribute (line 2)",
    '__attribute__((optimize("associative-math"))) void f(void);': "unsafe-math pragma or attribute (line 1)",
    '#pragma GCC \\\n optimize("Ofast")': "unsafe-math pragma or attribute (line 1)",
    'void f(void) { __asm__ volatile ("nop"); }': "inline assembly (line 1)",
    'asm("");': "inline assembly (line 1)",
    "x = _mm512_fmadd_pd(a, b, c);": "vendor intrinsics (line 1)",
    "__builtin_ia32_paddd(a, b);": "vendor intrinsics (line 1)",
    '__attribute__((no_sanitize("address"))) void f(void);': "code the sanitizer is kept from (line 1)",
    "#ifdef __SANITIZE_ADDRESS__": "a question whether a sanitizer runs (line 1)",
    "__attribute__((constructor)) void f(void);": "code before or after the calls (line 1)",
    'asm(".incbin \\"x\\"");': "a file built in (line 1)",
    '#include "/etc/passwd"': "an include by its whole path (line 1)",
    "# include <../x.h>": "an include by its whole path (line 1)",
}
PLAIN = [
    '// #pragma GCC optimize ("fast-math")\n/* asm("") _mm_pause() */',
    'const char *s = "asm(x) _mm_pause() __SANITIZE_ADDRESS__";',
    '#include <stdint.h>\n#include "near.h"\n#pragma omp parallel for\n#pragma GCC ivdep',
    "int asmuth, plasma_asm_count; double comma_mm_x; /* unfinished",
    "",
]


@pytest.mark.parametrize(("source", "note"), FOUND.items())
def test_constructs_are_found_in_c_and_cpp(source: str, note: str) -> None:
    for language in ("c", "cpp"):
        assert note in constructs.notes(source, language)


@pytest.mark.parametrize("source", PLAIN)
def test_comments_strings_and_plain_code_are_left_alone(source: str) -> None:
    assert constructs.notes(source, "c") == []


def test_other_languages() -> None:
    assert constructs.notes("!GCC$ unroll 4\n", "fortran") == ["a directive of a compiler (line 1)"]
    assert constructs.notes("subroutine f\nend\n", "fortran") == []
    assert constructs.notes("@njit(fastmath=True)\n", "python") == ["unsafe math for numba (line 1)"]
    assert constructs.notes("@njit(fastmath = False)\n", "python") == []


HOSTILE = (
    "/*",
    '"',
    "\\\n",
    "asm ",
    "__attribute__((",
    "\n",
    "# ",
    " ",
    "_mm_a",
    "'\"",
    "include",
    "fastmath=",
)


@pytest.mark.parametrize("language", ["c", "fortran", "python"])
def test_hostile_texts_take_no_time(language: str) -> None:
    for part in HOSTILE:
        started = time.process_time()
        constructs.notes(part * (1_000_000 // len(part)), language)
        assert time.process_time() - started < 20, part


def test_they_are_noted_on_a_grade_and_refuse_nothing(context: GradingContext) -> None:
    source = version(head='#pragma GCC optimize ("unroll-loops")\n', before='__asm__ volatile ("nop");')
    verdict = submit(context, source)
    assert verdict.status == "ok"
    noted = [note for note in verdict.notes if note.startswith("source: ")]
    assert [note.partition(" (")[0] for note in noted] == [
        "source: unsafe-math pragma or attribute",
        "source: inline assembly",
    ]
