"""Building: what compiles, what is said about what does not, and what is never said."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.building.build_log import LOG_MAX, filtered
from hpcagent_bench.harness.sandbox import Build
from tests.native.native_kernels import HONEST, source


def make(text: str, folder: Path, language: str = "c", sealed: bool = True, timeout_s: float = 60) -> Build:
    return sandbox.build(text, language, "axpy_fp64", folder, timeout_s=timeout_s, sealed=sealed)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_good_source(tmp_path: Path, sealed: bool) -> None:
    built = make(source(HONEST), tmp_path, sealed=sealed)
    assert built.ok
    assert built.library == tmp_path / "axpy.so"
    assert built.commands[0][0] == "gcc"
    assert "-O3" in built.commands[0]
    assert len(built.digest) == 32
    assert built.digest == make(source(HONEST), tmp_path / "again", sealed=sealed).digest


def test_a_bad_source_is_told_where(tmp_path: Path) -> None:
    built = make(source("undeclared = 1;"), tmp_path)
    assert not built.ok
    assert built.library is None
    assert "axpy.c:12:1: error: 'undeclared' undeclared" in built.log
    assert str(tmp_path) not in built.log


def test_a_library_without_the_symbol_is_a_failed_build(tmp_path: Path) -> None:
    built = make("void other(void) {}\n", tmp_path)
    assert not built.ok
    assert built.log.startswith("axpy.c: the library does not define axpy_fp64")


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize(
    "line", ['#include "{}"', '#line 1 "{}"\nint f(void) {{ return q; }}', '__asm__(".include \\"{}\\"");']
)
def test_other_files_are_never_quoted(tmp_path: Path, line: str, sealed: bool) -> None:
    secret = tmp_path / "seeds.json"
    secret.write_text("first_secret = 4242;\nsecond_secret: 1717\n")
    built = make(source(HONEST, line.format(secret)), tmp_path / "out", sealed=sealed)
    assert not built.ok
    assert not any(word in built.log for word in ("4242", "1717", "first_secret", "second_secret"))


def test_the_compiler_sees_no_host_file(tmp_path: Path) -> None:
    for path in ("/etc/passwd", str(paths.package_root() / "config.py"), str(tmp_path / "beside.h")):
        (tmp_path / "beside.h").touch()
        built = make(source(HONEST, f'#include "{path}"'), tmp_path / "out")
        assert not built.ok
        first = next(line for line in built.log.splitlines() if "error" in line)
        assert "No such file" in first or "Permission denied" in first


def test_an_endless_header_ends_with_the_time_limit(tmp_path: Path) -> None:
    built = make(source(HONEST, '#include "/dev/zero"'), tmp_path, timeout_s=0.5)
    assert built.timed_out
    assert not built.ok
    assert built.log.startswith("the compiler was stopped after 0.5 s")


def test_bombs_are_failed_builds_with_a_bounded_log(tmp_path: Path) -> None:
    flood = make(source("".join(f"q{k};" for k in range(3_000))), tmp_path)
    assert not flood.ok
    assert len(flood.log) < LOG_MAX + 100
    giant = make(source(HONEST, "struct { char a[16ULL << 30]; } z = {{1}};"), tmp_path)
    assert not giant.ok


def test_a_source_that_is_no_text_is_a_failed_build(tmp_path: Path) -> None:
    assert not make("\udc80\x00 int", tmp_path).ok


def test_an_unknown_language_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'fortran'"):
        make("", tmp_path, language="fortan")


def test_the_filter_keeps_what_is_about_the_source() -> None:
    log = "\n".join(
        [
            "In file included from k.cpp:1:",
            "/usr/include/x.h:9:1: error: bad",
            "    9 | private line",
            "      | ^~~",
            "k.cpp:3:5: note: here",
            "    3 | own line",
            "/usr/bin/ld: /tmp/ccAb12.o: in function `f': k.cpp:(.text+0x5): undefined reference to `g'",
            "collect2: error: ld returned 1 exit status",
        ]
    )
    assert filtered(log, "k.cpp").splitlines() == [
        "In file included from k.cpp:1:",
        "k.cpp:3:5: note: here",
        "    3 | own line",
        "ld: object: in function `f': k.cpp:(.text+0x5): undefined reference to `g'",
        "ld: error: ld returned 1 exit status",
        "k.cpp: error or warning in another file, which is not shown",
    ]


def _reference(text: str) -> tuple[bool, str, str]:
    built = sandbox.build_reference(text, "c", "axpy_fp64")
    return built.ok, str(built.library), built.digest


def test_references_are_built_once_whoever_asks() -> None:
    text = source(HONEST + f"/* {os.getpid()} */")
    with ProcessPoolExecutor(3) as pool:
        answers = set(pool.map(_reference, [text] * 3))
    assert len(answers) == 1
    ok, path, _ = answers.pop()
    assert ok
    stamp = Path(path).stat().st_mtime_ns
    assert _reference(text)[1] == path
    assert Path(path).stat().st_mtime_ns == stamp
    assert not list(Path(path).parent.glob(".making-*"))


def test_a_reference_that_does_not_build_is_not_cached() -> None:
    before = set((paths.cache_root() / "reference").rglob("*.so"))
    assert not _reference("int x")[0]
    assert set((paths.cache_root() / "reference").rglob("*.so")) == before
