"""Inline assembly that embeds a file at build time, to print it at run time: the file is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_api import leaked
from attack_rig import Rig, refused, version

EMBED = """__asm__(".section .rodata\\nstolen: .incbin \\"{path}\\"\\n.byte 0\\n.previous");
extern const char stolen[];"""


@pytest.mark.parametrize("name", ["seeds.json", "hpcagent_bench0.db", "tokens.json"])
def test_a_hidden_file_cannot_be_embedded(judge: Rig, hidden: dict[str, Path], name: str) -> None:
    verdict = judge.attack(version("HONEST; area[0] += stolen[0] * 0;", EMBED.format(path=hidden[name])))
    refused(verdict, "build_error", ".")
    assert verdict.build is not None
    assert not leaked(verdict.build.log)


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/1/environ", "/proc/self/environ"])
def test_what_the_build_does_see_holds_no_secret(judge: Rig, path: str) -> None:
    """The compiler's own environment may be embedded: it names folders of the sandbox and nothing else."""
    check = 'if (strstr(stolen, "HPCAGENT") || strstr(stolen, "root:") || strstr(stolen, "TOKEN")) area = 0;'
    verdict = judge.preview(version(check + "HONEST;", EMBED.format(path=path)))
    assert verdict.status in ("ok", "build_error"), verdict.reason


def test_twin_with_data_of_its_own_in_assembly_is_accepted(judge: Rig) -> None:
    data = EMBED.replace("stolen: .incbin", "stolen: .ascii").format(path="mine")
    judge.accepts(version("HONEST; area[0] += stolen[4];", data))
