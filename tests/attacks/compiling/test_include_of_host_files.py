"""A source that includes files of the host as headers: they do not exist where it is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_api import leaked
from attack_rig import Rig, refused, said, version

from hpcagent_bench import paths

HOST = (
    "/etc/passwd",
    "/etc/shadow",
    "/etc/hostname",
    str(paths.package_root() / "config.py"),
    str(paths.benchmarks_root() / "loop_level_reasoning" / "tsvc_2_s311" / "tsvc_2_s311_numpy.py"),
    str(paths.cache_root()),
    str(Path.home() / ".bashrc"),
)


@pytest.mark.parametrize("name", ["seeds.json", "reference.c", "hpcagent_bench0.db"])
def test_the_judges_files_are_not_there_to_include(judge: Rig, hidden: dict[str, Path], name: str) -> None:
    verdict = judge.attack(version("HONEST;", f'#include "{hidden[name]}"'))
    refused(verdict, "build_error", "No such file|Permission denied")
    assert verdict.build is not None
    assert not leaked(verdict.reason + verdict.build.log)


def test_no_host_file_can_even_be_found(judge: Rig) -> None:
    checks = "\n".join(f'#if __has_include("{path}")\n#error it is there\n#endif' for path in HOST)
    judge.accepts(version("HONEST;", checks))


def test_climbing_out_of_the_build_folder_leads_nowhere(judge: Rig) -> None:
    verdict = judge.attack(version("HONEST;", '#include "../../../../../../etc/passwd"'))
    refused(verdict, "build_error", "No such file")


def test_nothing_lies_beside_the_source(judge: Rig) -> None:
    """Only the source itself; an earlier grade of the same folder would show here."""
    own = "polygon_area_terms.c"
    others = ("polygon_area_terms.so", "polygon_area_terms_numpy.py", "../judge/seeds.json", "kernel.so")
    absent = "\n".join(f'#if __has_include("{name}")\n#error it is there\n#endif' for name in others)
    present = f'#if !__has_include("{own}")\n#error the source is not called {own}\n#endif'
    verdict = judge.attack(version("HONEST;", f"{present}\n{absent}"))
    assert verdict.status == "ok", said(verdict)


def test_twin_with_headers_of_the_compiler_is_accepted(judge: Rig) -> None:
    judge.accepts(version("HONEST;", "#include <complex.h>\n#include <omp.h>\n#include <immintrin.h>"))
