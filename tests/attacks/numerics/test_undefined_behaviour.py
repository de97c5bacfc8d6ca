"""Undefined behaviour that happens to give the right answer: memory errors refuse, the rest is told."""

from __future__ import annotations

import pytest
from attack_rig import Rig, flagged, refused, said, version

MEMORY = {
    "reads one element too many": "volatile double next = x[LEN_1D]; (void)next; HONEST;",
    "reads one element too few": "volatile double last = y[-1]; (void)last; HONEST;",
    "reads behind a buffer of its own": """double *own = malloc(LEN_1D * sizeof *own); HONEST;
        volatile double behind = own[LEN_1D]; (void)behind; free(own);""",
    "writes behind a buffer of its own": """char *own = malloc(20); HONEST; own[20] = 1;
        *(volatile char *)own; free(own);""",
    "reads what it gave back": """double *own = malloc(64); own[0] = 1; free(own);
        volatile double gone = own[0]; (void)gone; HONEST;""",
    "reads behind an array on the stack": """volatile int64_t few[4] = {0};
        volatile int at = 4 + (LEN_1D < 0); volatile int64_t behind = few[at]; (void)behind; HONEST;""",
}
UNDEFINED = {
    "signed overflow": """volatile int large = 2147483647; volatile int more = large + (int)(LEN_1D > 0);
        (void)more; HONEST;""",
    "shift by too much": "volatile int by = 40; volatile int shifted = 1 << by; (void)shifted; HONEST;",
    "unaligned access": """char raw[32]; volatile int off = 1; double *odd = (double *)(raw + off);
        *odd = 1.0; volatile double back = *odd; (void)back; HONEST;""",
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_error_is_refused(judge: Rig, name: str) -> None:
    refused(judge.attack(version(MEMORY[name])), "incorrect", "^sanitizer: ")


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_behaviour_makes_the_grade_suspect(judge: Rig, name: str) -> None:
    flagged(judge.attack(version(UNDEFINED[name])), "undefined behaviour: ")


HIDDEN = {
    "by a macro": (
        "#ifndef __SANITIZE_ADDRESS__\nvolatile double next = x[LEN_1D]; (void)next;\n#endif\nHONEST;",
        "",
        "a question whether a sanitizer runs",
    ),
    "by an attribute": (
        "HONEST; peek(x, LEN_1D);",
        "__attribute__((no_sanitize_address, noinline)) static void peek(const double *x, int64_t n)\n"
        "{ volatile double next = x[n]; (void)next; }\n",
        "code the sanitizer is kept from",
    ),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_code_kept_from_the_sanitizers_is_noted(judge: Rig, way: str) -> None:
    """What cannot be seen cannot be refused: it gains nothing by reading on, and the reader is told."""
    body, before, said_of_it = HIDDEN[way]
    verdict = judge.attack(version(body, before))
    assert verdict.status == "ok", said(verdict)
    assert any(said_of_it in note for note in verdict.notes), verdict.notes


def test_twin_that_wraps_unsigned_numbers_and_stays_within_its_buffers_is_accepted(judge: Rig) -> None:
    body = """volatile uint32_t large = 4294967295u; volatile uint32_t more = large + 1u; (void)more;
    double *own = malloc(LEN_1D * sizeof *own); own[LEN_1D - 1] = 1; HONEST; free(own);"""
    judge.accepts(version(body))
