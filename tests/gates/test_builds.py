"""Builds of a grade: which are made, what they are made of, and that a bad one holds nobody up."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from hpcagent_bench import paths
from hpcagent_bench.harness import anticheat, grade_under, sandbox
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.submission import Grading, Submission
from hpcagent_bench.toolchain import flags
from tests.support.gate_rig import FORTRAN, KERNEL, built, judge, submission, submit, version

SYMBOL = KERNEL.symbol


def build_gate(context: GradingContext, given: Submission, folder: Path) -> tuple[Grading, str]:
    """The build gate of a final grade: the grade, and the reason it was refused for (empty when not)."""
    grading = Grading(context, given, grade_under.final_settings(context, KERNEL), folder)
    rejection = anticheat.build_gate(grading)
    assert rejection is None or (rejection.gate, rejection.status) == ("build", "build_error")
    return grading, "" if rejection is None else rejection.reason


def test_a_final_grade_builds_three_times_and_a_preview_once(context: GradingContext, tmp_path: Path) -> None:
    grading, reason = build_gate(context, submission(version()), tmp_path)
    assert reason == ""
    made = (grading.build, grading.rebuilt, grading.sanitized)
    places = [one.library for one in made if one is not None]
    assert len(set(places)) == 3
    assert {place.name for place in places if place} == {"polygon_area_terms.so"}
    assert all((one.commands[0][0] == "gcc") for one in made if one is not None)
    preview = Grading(
        context, submission(version()), grade_under.preview_settings(context, KERNEL), tmp_path / "preview"
    )
    assert anticheat.build_gate(preview) is None
    assert preview.build is not None
    assert preview.build.ok
    assert (preview.rebuilt, preview.sanitized) == (None, None)


def test_a_failed_first_build_ends_the_others(context: GradingContext, tmp_path: Path) -> None:
    endless = '#ifdef __SANITIZE_ADDRESS__\n#include "/dev/zero"\n#else\n#error no\n#endif\n'
    grading, reason = build_gate(context, submission(endless), tmp_path)
    assert "error: #error no" in reason
    assert grading.sanitized is not None
    assert grading.sanitized.timed_out
    assert grading.sanitized.seconds < context.settings.timeouts.compile_s


def test_the_first_build_goes_ahead_of_the_others(
    context: GradingContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, seen = sandbox.build, {}

    def watched(source: str, language: str, symbol: str, folder: Path, **more: Any) -> sandbox.Build:
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        seen[folder.name] = (nice, more["timeout_s"])
        return make(source, language, symbol, folder, **more)

    monkeypatch.setattr(sandbox, "build", watched)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    build_gate(context, submission(version()), tmp_path)
    limit = context.settings.timeouts.compile_s
    assert seen["build"] == (own, limit)
    assert seen["rebuild"][0] > own
    assert seen["rebuild"][1] > limit
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


@pytest.mark.parametrize(
    ("source", "language", "wanted"),
    [
        ("int x = ;\n", "c", "polygon_area_terms.c:1:9: error: "),
        (version(head="static void inner(void);\n", before="inner();"), "c", "inner"),
        (version(before="nowhere();", head="void nowhere(void);\n"), "c", "undefined reference to `nowhere'"),
        ("int x;\n", "c", "the library does not define polygon_area_terms_fp64"),
        (f"static void {SYMBOL}(void) {{}}\n", "c", "the library does not define"),
        (f"void {SYMBOL}() {{}}\n", "cpp", "the library does not define"),
        ("program p\nend program\n", "fortran", "polygon_area_terms"),
    ],
    ids=["syntax", "undefined static", "undefined", "no symbol", "static symbol", "mangled", "a program"],
)
def test_what_does_not_build_is_a_build_error(
    context: GradingContext, tmp_path: Path, source: str, language: str, wanted: str
) -> None:
    grading, reason = build_gate(context, submission(source, language), tmp_path)
    assert grading.build is not None
    assert wanted in reason or wanted in grading.build.log, (reason, grading.build.log)


def test_clang_builds_and_grades(context: GradingContext) -> None:
    for language in ("c", "cpp"):
        source = version(language=language).replace("#include <omp.h>\n", "")
        verdict = submit(context, source, language, family="llvm")
        assert (verdict.status, verdict.reason) == ("ok", "")
        assert verdict.build is not None
        assert verdict.build.commands[0][0] in ("clang", "clang++")
        assert {"-O3", "-march=native"} <= set(verdict.build.commands[0])
        absent = "the llvm compilers of this host have no OpenMP: built without it" in verdict.notes
        assert absent == ("-fno-openmp" in verdict.build.commands[0])
    wrong = version(after="area[0] = 0.5;").replace("#include <omp.h>\n", "")
    assert submit(context, wrong, family="llvm").status == "incorrect"


def test_a_family_that_does_not_build_the_language(context: GradingContext, tmp_path: Path) -> None:
    _, reason = build_gate(context, submission(FORTRAN, "fortran", family="llvm"), tmp_path)
    assert reason == "llvm does not build fortran"


class TestLibrary:
    def make(self, folder: Path, source: str) -> Path:
        made = sandbox.build(source, "c", SYMBOL, folder, timeout_s=60)
        assert made.library is not None, made.log
        return made.library

    def test_a_library_is_graded_like_its_source(self, context: GradingContext, tmp_path: Path) -> None:
        right = submit(context, "", library=self.make(tmp_path / "right", version()))
        assert (right.status, right.reason, right.solved) == ("ok", "", True)
        wrong = submit(context, "", library=self.make(tmp_path / "wrong", version(after="area[1] = 1.0;")))
        assert wrong.status == "incorrect"

    def test_the_copy_is_the_judges_own(self, context: GradingContext, tmp_path: Path) -> None:
        library = self.make(tmp_path / "given", version())
        digest = sandbox.digest(library.read_bytes())
        with built(context, submission("", library=library)) as grading:
            library.write_bytes(b"replaced after it was looked at")
            for made in (grading.build, grading.rebuilt):
                assert made is not None
                assert made.library is not None
                assert made.library != library
                assert made.digest == digest == sandbox.digest(made.library.read_bytes())
            assert grading.sanitized is None

    def test_what_is_no_library_is_a_build_error(self, context: GradingContext, tmp_path: Path) -> None:
        good = self.make(tmp_path / "good", version())
        link, fifo, text = tmp_path / "link.so", tmp_path / "fifo.so", tmp_path / "text.so"
        link.symlink_to(good)
        os.mkfifo(fifo)
        text.write_text("#!/bin/sh\necho yes\n")
        other = tmp_path / "other.so"
        (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "other.c", "-o", "other.so"], cwd=tmp_path, check=True)
        cases = [
            (link, "the library cannot be read"),
            (fifo, "it is no regular file"),
            (text, "not an ELF file"),
            (other, f"the library does not define {SYMBOL}"),
            (tmp_path / "absent.so", "No such file"),
            (tmp_path, "the library cannot be read"),
        ]
        for number, (path, wanted) in enumerate(cases):
            _, reason = build_gate(context, submission("", library=path), tmp_path / f"grade{number}")
            assert wanted in reason
            assert str(tmp_path) not in reason


BOMBS = {
    "endless header": '#include "/dev/zero"\n',
    "template depth": "template <int n> struct T { typedef typename T<n + 1>::t t; };\nT<0>::t v;\n",
    "templates by the square": (
        "template <int d, class A, class B> struct P { P<d - 1, A, P<d, A, B>> a; P<d - 1, B, A> b; };\n"
        "P<900, int, long> v;\n"
    ),
    "16 GB of data": "struct { char a[16ULL << 30]; } z = {{1}};\n",
    "nested includes": '#include "polygon_area_terms.cpp"\n',
    "macros that double": "".join(
        f"#define a{k} a{k - 1} a{k - 1}\n" if k else "#define a0 int q;\n" for k in range(40)
    )
    + "a39\n",
    "megabytes of errors": "q0;" * 60_000,
    "long line": "int " + "(" * 200_000 + "x" + ")" * 200_000 + ";\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_compile_bombs_are_build_errors(tmp_path: Path, bomb: str) -> None:
    with judge() as context:
        context.settings.timeouts.compile_s = 2.0
        grading, reason = build_gate(context, submission(bomb, "cpp"), tmp_path)
        assert reason
        assert len(reason) <= 300
        assert grading.build is not None
        assert len(grading.build.log) < sandbox.LOG_MAX + 200
        context.settings.timeouts.compile_s = 60.0
        _, reason = build_gate(context, submission(version()), tmp_path / "next")
        assert reason == ""


def test_a_compiler_sees_no_file_of_the_judge(context: GradingContext, tmp_path: Path) -> None:
    for name in ("seeds.json", "results.db"):
        (tmp_path / name).write_text("4242")
    seen = (tmp_path / "seeds.json", tmp_path / "results.db", paths.package_root() / "config.py", Path.home())
    probes = "".join(
        f'#if __has_include("{path}")\n#error SEEN {number}\n#endif\n' for number, path in enumerate(seen)
    )
    grading, reason = build_gate(context, submission(version(head=probes)), tmp_path / "grade")
    assert reason == "", grading.build
    embedded = f'__asm__(".section .rodata\\n.incbin \\"{tmp_path}/seeds.json\\"\\n.text");\n'
    _, reason = build_gate(context, submission(version(head=embedded)), tmp_path / "again")
    assert reason
    assert "4242" not in reason


def test_linked_libraries_come_from_the_allowlist(context: GradingContext, tmp_path: Path) -> None:
    given = submission(version(), build=("-lm", "-DN=3", "-ffast-math", "-lsocketry"))
    grading, reason = build_gate(context, given, tmp_path)
    assert reason == ""
    assert grading.build is not None
    command = grading.build.commands[0]
    assert "-DN=3" in command
    assert not {"-ffast-math", "-lsocketry"} & set(command)
    assert flags.split_build_list(["-lsocketry"])[1] == ["-lsocketry"]


def test_nothing_is_left_of_a_build(context: GradingContext, tmp_path: Path) -> None:
    build_gate(context, submission(version()), tmp_path / "first")  # threads that live on are started once
    before = set(threading.enumerate())
    build_gate(context, submission(version()), tmp_path)
    assert set(threading.enumerate()) <= before
    for place in ("build", "rebuild"):
        made = {path.name for path in (tmp_path / place).iterdir()}
        assert made == {"polygon_area_terms.c", "polygon_area_terms.so"}
