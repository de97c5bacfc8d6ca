"""The flag matrix: what is always there, what a submission may add, and that each command works."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from hpcagent_bench.errors import UserError
from hpcagent_bench.toolchain import flags, languages

EMPTY = {
    "c": "void f(void) {}\n",
    "cpp": 'extern "C" void f() {}\n',
    "fortran": "subroutine f() bind(C)\nend subroutine f\n",
}


@pytest.mark.parametrize("language", EMPTY)
def test_each_language_builds_a_shared_library(language, tmp_path):
    source = tmp_path / f"f{languages.get(language).extension}"
    source.write_text(EMPTY[language])
    command = flags.compile_command(language, source, tmp_path / "f.so")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
    ctypes.CDLL(str(tmp_path / "f.so")).f()
    wanted = (
        "-O3 -march=native -fopenmp -fno-math-errno -fno-trapping-math -fno-signed-zeros -fstrict-aliasing"
    )
    assert set(f"{wanted} -fPIC -Wall -Wextra -lm".split()) <= set(command)
    assert not {"-ffast-math", "-Ofast", "-fassociative-math"} & set(command)


def test_submission_and_reference_are_built_alike_and_the_runner_without_contraction():
    source, output = Path("k.c"), Path("k.so")
    submission = flags.compile_command("c", source, output)
    assert submission == flags.compile_command("c", source, output, purpose="reference")
    runner = flags.compile_command("c", source, output, purpose="runner", shared=False)
    assert "-ffp-contract=off" in runner
    assert "-shared" not in runner


def test_extras_keep_link_order():
    extra = ["-DN=4", "-lgomp", "-I/opt/include", "-L/opt/lib"]
    command = flags.compile_command("c", Path("k.c"), Path("k.so"), extra=extra)
    middle = command.index("k.c")
    assert command[middle - 2 : middle] == ["-DN=4", "-I/opt/include"]
    assert command[-3:] == ["-lgomp", "-L/opt/lib", "-lm"]


def test_build_lists_keep_only_paths_macros_and_known_libraries():
    keep = ["-I/opt/include", "-L.", "-DN", "-DN=4", "-DF(x)=x+1", "-lm", "-lopenblas", "-lstdc++"]
    refuse = [
        "-ffast-math",
        "-Ofast",
        "-std=c99",
        "-O1",
        "-I",
        "-l",
        "-levil",
        "-l:libm.a",
        "-D1",
        "x.c",
        "@f",
    ]
    refuse += ["-Wl,-rpath,/tmp", "-fplugin=x.so", "-o", "", "-lm -lz", "-march=core2"]
    kept, refused = flags.split_build_list([*keep, *refuse])
    assert kept == keep
    assert refused == refuse


def test_python_is_a_language_without_a_compiler():
    assert languages.get("python").extension == ".py"
    assert languages.COMPILED == ("c", "cpp", "fortran")
    with pytest.raises(UserError, match="python is not compiled"):
        flags.compile_command("python", Path("k.py"), Path("k.so"))


@pytest.mark.parametrize(
    ("language", "family"), [("c", "llvm"), ("cpp", "llvm"), ("c", "gcc"), ("fortran", "gcc")]
)
@pytest.mark.parametrize("purpose", ["submission", "sanitized"])
def test_each_family_builds_by_the_same_matrix(language, family, purpose, tmp_path):
    source = tmp_path / f"f{languages.get(language).extension}"
    source.write_text(EMPTY[language])
    command = flags.compile_command(language, source, tmp_path / "f.so", family=family, purpose=purpose)
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
    semantics = "-march=native -fno-math-errno -fno-trapping-math -fno-signed-zeros -fstrict-aliasing"
    assert set(semantics.split()) <= set(command)
    parallel = "-fopenmp" if family == "gcc" or flags.has_openmp(command[0]) else "-fno-openmp"
    assert parallel in command
    assert ("-fsanitize=address,undefined" in command) == (purpose == "sanitized")


@pytest.mark.parametrize("family", ["gcc", "llvm"])
def test_a_function_nobody_defines_fails_the_build(family, tmp_path):
    source = tmp_path / "f.c"
    source.write_text("void nowhere(void);\nvoid f(void) { nowhere(); }\n")
    command = flags.compile_command("c", source, tmp_path / "f.so", family=family)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nowhere" in done.stderr


def test_unknown_languages_and_families():
    with pytest.raises(UserError, match="language 'fortan' is not supported; did you mean 'fortran'"):
        languages.get("fortan")
    with pytest.raises(UserError, match="compiler family 'gnu' does not build c"):
        flags.compile_command("c", Path("k.c"), Path("k.so"), family="gnu")
