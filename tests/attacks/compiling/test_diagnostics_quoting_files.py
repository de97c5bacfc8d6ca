"""Making the compiler's messages quote what it read: the log speaks of the submission alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_api import leaked
from attack_rig import Rig, refused, version

TRICKS = {
    "include": '#include "{}"',
    "line": '#line 1 "{}"\nint f(void) {{ return undeclared_name; }}',
    "assembler include": '__asm__(".include \\"{}\\"");',
    "dependency": '#pragma GCC dependency "{}" tell\nint broken[-1];',
    "include in a macro": '#define WHERE "{}"\n#include WHERE',
    "include next": '#include_next "{}"',
}


@pytest.mark.parametrize("trick", TRICKS)
def test_no_line_of_another_file_is_quoted(judge: Rig, hidden: dict[str, Path], trick: str) -> None:
    for path in hidden.values():
        verdict = judge.attack(version("HONEST;", TRICKS[trick].format(path)))
        refused(verdict, "build_error", ".")
        assert verdict.build is not None
        assert not leaked(verdict.build.log + verdict.reason)


def test_twin_with_a_mistake_is_told_its_own_line(judge: Rig) -> None:
    verdict = judge.attack(version("HONEST; forgotten = 1;"))
    refused(verdict, "build_error", r"^polygon_area_terms\.c:\d+:\d+: error: 'forgotten' undeclared")
    assert verdict.build is not None
    assert "HONEST; forgotten = 1;" in verdict.build.log
