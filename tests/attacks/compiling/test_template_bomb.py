"""C++ that keeps its compiler busy: endless or exponential templates, constants, self-inclusion."""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused

HEAD = "#include <cstdint>\n"
TAIL = """
extern "C" void polygon_area_terms_fp64(double *area, const double *x, const double *y, const int64_t LEN_1D,
                                        uint8_t *, const int64_t) {
    for (int64_t i = 0, before = LEN_1D - 1; i < LEN_1D; before = i++)
        area[i] = (x[i] + x[before]) * (y[i] - y[before]);
}
"""
BOMBS = {
    "endless": (
        "template <long n> struct T { static constexpr long v = T<n + 1>::v; }; long bomb = T<0>::v;",
        "template instantiation depth",
    ),
    "exponential": (
        "template <int d, long p> struct F { static constexpr long v = F<d - 1, 2 * p>::v"
        " + F<d - 1, 2 * p + 1>::v; }; template <long p> struct F<0, p> { static constexpr long v = p; };"
        " long bomb = F<40, 1>::v;",
        "compile time limit|killed|memory|error",
    ),
    "constant evaluation": (
        "constexpr long spin() { long s = 0; for (long i = 0; i < 1L << 40; i++) s += i; return s; }"
        " static_assert(spin() != 0);",
        "error|compile time limit",
    ),
    "its own header": ("#include __FILE__\n#include __FILE__", "include.*nested|compile time limit|depth"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_failed_build_within_its_limit(judge: Rig, name: str) -> None:
    judge.context.settings.timeouts.compile_s = 3.0
    bomb, reason = BOMBS[name]
    verdict = judge.attack(HEAD + bomb + TAIL, "cpp")
    refused(verdict, "build_error", reason)
    assert verdict.build is not None
    assert len(verdict.build.log) < 70_000


def test_twin_with_ordinary_templates_is_accepted(judge: Rig) -> None:
    judge.context.settings.timeouts.compile_s = 30.0
    honest = "template <int n> struct F { static constexpr long v = n * F<n - 1>::v; };"
    judge.accepts(HEAD + honest + "template <> struct F<0> { static constexpr long v = 1; };\n" + TAIL, "cpp")
