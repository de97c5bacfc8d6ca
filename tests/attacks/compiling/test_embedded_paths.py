"""A source that asks where it is: the names of the sandbox, nothing of the host."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

from attack_rig import Rig, version

from hpcagent_bench.harness import sandbox

ASK = (
    "__attribute__((used)) static const char *const where[] = "
    "{__FILE__, __BASE_FILE__, __builtin_FILE(), __DATE__};"
)


def test_a_library_holds_no_place_of_the_host(tmp_path: Path) -> None:
    folder = tmp_path / "grade-of-somebody"
    text = version("HONEST;", ASK)
    built = sandbox.build(text, "c", "polygon_area_terms_fp64", folder, timeout_s=60)
    assert built.library is not None, built.log
    held = built.library.read_bytes()
    for told in (str(folder), "grade-of-somebody", str(Path.home()), str(Path.cwd())):
        assert told.encode() not in held
    for told in (getpass.getuser(), socket.gethostname()):
        assert f"/{told}/".encode() not in held
    assert b"polygon_area_terms.c" in held


def test_twin_that_prints_its_file_name_is_accepted(judge: Rig) -> None:
    judge.accepts(version('HONEST; if (strcmp(__FILE__, "polygon_area_terms.c")) area[0] = -1;'))
