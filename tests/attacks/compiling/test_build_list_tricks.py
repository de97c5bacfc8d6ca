"""A build list that asks for more than include folders, macros and allowed libraries."""

from __future__ import annotations

import pytest
from attack_rig import KERNEL, Rig, refused, said, version

from hpcagent_bench.corpus import spec
from hpcagent_bench.toolchain import flags

REFUSED = (
    "-Ofast",
    "-ffast-math",
    "-std=c99",
    "-O0",
    "-fplugin=/build/plugin.so",
    "-fplugin-arg-x-y",
    "-specs=/build/specs",
    "-wrapper",
    "-B/build",
    "@/etc/passwd",
    "@polygon_area_terms.c",
    "-include",
    "/etc/passwd",
    "-include/etc/passwd",
    "-imacros",
    "-idirafter/etc",
    "-isystem/etc",
    "-x",
    "assembler",
    "-o",
    "/tmp/elsewhere.so",
    "-Wl,-rpath,/tmp",
    "-Wl,--version-script=/etc/passwd",
    "-Xlinker",
    "-T/build/script",
    "-Wa,-I/etc",
    "-Wp,-I/etc",
    "-save-temps",
    "-dumpbase",
    "-run",
    "-L",
    "-I",
    "-D",
    "-D1X",
    "-U_FORTIFY_SOURCE",
    "-l/etc/passwd",
    "-l:libcuda.so",
    "-l../../x",
    "-lcuda",
    "-lm -lcuda",
    "-lm\n-lcuda",
    "",
    "other.c",
    "--sysroot=/",
)


def test_none_of_them_reaches_the_compiler(judge: Rig) -> None:
    kept, dropped = flags.split_build_list(REFUSED)
    assert (kept, dropped) == ([], list(REFUSED))
    verdict = judge.attack(version("HONEST;"), build=tuple(item for item in REFUSED if item[:2] != "-l"))
    assert verdict.status == "ok", said(verdict)
    assert verdict.build is not None
    for command in verdict.build.commands:
        assert not set(REFUSED) & set(command) - {"-o", "-x", ""}
        assert "/tmp/elsewhere.so" not in command


@pytest.mark.parametrize("folder", ["/etc", "/", "/proc/self", "/root", "/run", "/build/.."])
def test_an_include_folder_of_the_host_holds_nothing(judge: Rig, folder: str) -> None:
    names = ("passwd", "environ", "seeds.json", "judge/seeds.json", "etc/passwd", "root/.bashrc")
    absent = "\n".join(f"#if __has_include(<{name}>)\n#error it is there\n#endif" for name in names[1:])
    if folder == "/proc/self":
        absent = ""  # the compiler's own environment may be read: it is the sandbox's
    verdict = judge.attack(
        version("HONEST;", "#if __has_include(<passwd>)\n#error it is there\n#endif\n" + absent),
        build=(f"-I{folder}", f"-L{folder}"),
    )
    assert verdict.status == "ok", said(verdict)


MACROS = {
    "line break": '-DX=1\n#include "/etc/passwd"',
    "line break before a directive": "-DX=1\n#error reached",
    "a word of the language": "-Ddouble=float",
    "an option in a macro": "-DX -O0",
}


@pytest.mark.parametrize("macro", MACROS.values(), ids=MACROS.keys())
def test_a_macro_changes_the_submission_and_nothing_else(judge: Rig, macro: str) -> None:
    verdict = judge.attack(version("HONEST;"), build=(macro,))
    assert verdict.status in ("ok", "build_error", "incorrect"), said(verdict)
    if verdict.build is not None:
        assert "root:" not in verdict.build.log
        assert all("-O3" in command and "-O0" not in command for command in verdict.build.commands)


def test_a_lost_symbol_is_a_failed_build(judge: Rig) -> None:
    renamed = judge.attack(version("HONEST;"), build=(f"-D{spec.load(KERNEL).symbol}=other",))
    refused(renamed, "build_error", "does not define")


def test_twin_with_a_macro_an_include_folder_and_a_library_is_accepted(judge: Rig) -> None:
    text = version(
        "if (FACTOR != 2) area = 0;\nHONEST; area[0] = sqrt(area[0] * area[0]) * (area[0] < 0 ? -1 : 1);"
    )
    verdict = judge.attack(text, build=("-DFACTOR=2", "-I.", "-L.", "-lm", "-lpthread"))
    assert verdict.status == "ok", said(verdict)
    assert verdict.build is not None
    assert {"-DFACTOR=2", "-I.", "-L.", "-lm", "-lpthread"} <= set(verdict.build.commands[0])
