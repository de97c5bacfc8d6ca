"""Fortran that includes a file at build time or opens one at run time: neither is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_api import leaked
from attack_rig import Rig, honest, refused, said

BEGIN = "    before = LEN_1D - 1\n"
DECLARE = "    integer(c_int64_t) :: i, before\n"


def fortran(statements: str, declarations: str = "") -> str:
    """The emitted reference with further declarations and first statements."""
    text = honest(language="fortran")
    assert text.count(BEGIN) == 1
    assert text.count(DECLARE) == 1
    return text.replace(DECLARE, DECLARE + declarations).replace(BEGIN, statements + BEGIN)


@pytest.mark.parametrize("name", ["seeds.json", "reference.c"])
def test_an_included_file_is_not_there(judge: Rig, hidden: dict[str, Path], name: str) -> None:
    for line in (f"    include '{hidden[name]}'\n", f'#include "{hidden[name]}"\n'):
        verdict = judge.attack(fortran(line), "fortran")
        if line.startswith("#"):
            assert verdict.status in ("build_error", "ok"), said(verdict)
        else:
            refused(verdict, "build_error", ".")
        assert verdict.build is not None
        assert not leaked(verdict.build.log)


def test_a_file_opened_at_run_time_is_not_there(judge: Rig, hidden: dict[str, Path]) -> None:
    """Whoever could read one would answer wrong here."""
    files = ("/etc/passwd", "/proc/self/environ", *map(str, hidden.values()))
    statements = "".join(
        f"    open(newunit=unit, file='{path}', status='old', action='read', iostat=code)\n"
        "    if (code == 0) LEN_1D_seen = LEN_1D_seen + 1\n"
        for path in files
    )
    statements = "    LEN_1D_seen = 0\n" + statements + "    if (LEN_1D_seen > 0) return\n"
    declarations = "    integer :: unit, code, LEN_1D_seen\n"
    judge.accepts(fortran(statements, declarations), "fortran")


def test_twin_is_accepted(judge: Rig) -> None:
    judge.accepts(honest(language="fortran"), "fortran")
