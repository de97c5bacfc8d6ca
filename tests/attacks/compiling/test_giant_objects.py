"""Objects of many gigabytes in a small source: refused by the build, or when the library is loaded."""

from __future__ import annotations

import re

import pytest
from attack_rig import Rig, said, version

GIANTS = {
    "initialised": "struct giant { char a[16ULL << 30]; } giant = {{1}};",
    "zeroed": "char giant[64ULL << 30];",
    "assembled": '__asm__(".data\\ngiant: .fill 1 << 34, 1, 1\\n.previous");',
    "repeated": '__asm__(".data\\n.rept 100000000\\n.quad 1, 2, 3, 4\\n.endr\\n.previous");',
}


@pytest.mark.parametrize("name", GIANTS)
def test_a_giant_ends_in_the_build_or_at_loading(judge: Rig, name: str) -> None:
    judge.context.settings.timeouts.compile_s = 3.0
    verdict = judge.attack(version("HONEST;", GIANTS[name]))
    assert verdict.status in ("build_error", "incorrect"), said(verdict)
    assert re.search("memory|time limit|compiler|error|killed|library", verdict.reason), said(verdict)


def test_twin_with_a_table_of_a_megabyte_is_accepted(judge: Rig) -> None:
    judge.context.settings.timeouts.compile_s = 30.0
    judge.accepts(version("HONEST; table[0] = area[0];", "static double table[1 << 17];"))
