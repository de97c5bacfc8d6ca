"""What a library file is, read without opening it; binutils says the same of honest ones."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from hpcagent_bench.harness.building import shared_object

TEXT = """
void wanted(void) {}
void unwanted_too(void) {}
static void hidden_one(void) {}
__attribute__((visibility("hidden"))) void invisible(void) { hidden_one(); }
int variable = 3;
void absent(void);
void calls(void) { absent(); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "k.c").write_text(TEXT)
    subprocess.run(["gcc", "-shared", "-fPIC", "k.c", "-o", "k.so"], cwd=folder, check=True)
    return folder / "k.so"


def named_by_nm(library: Path) -> set[str]:
    """Functions that binutils finds."""
    said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[2] for line in said.stdout.splitlines() if line.split()[1] in "TW"}


def test_exports_are_what_binutils_says(library: Path) -> None:
    data = library.read_bytes()
    functions = named_by_nm(library)
    assert {"wanted", "unwanted_too", "calls"} <= functions
    for name in [*functions, "hidden_one", "invisible", "variable", "absent", "want", "anted", ""]:
        assert shared_object.exports(data, name) == (name in functions), name
    assert shared_object.check(data, "wanted") == ""
    assert shared_object.check(data, "absent") == "the library does not define absent"


def test_a_library_without_sections_is_still_read(library: Path, tmp_path: Path) -> None:
    data = bytearray(library.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[60:62] = bytes(2)  # e_shnum
    assert shared_object.exports(bytes(data), "wanted")


def test_other_files_are_no_libraries(library: Path, tmp_path: Path) -> None:
    data = library.read_bytes()
    other_machine = data[:18] + b"\x08\x00" + data[20:]
    (tmp_path / "k.c").write_text(TEXT)
    subprocess.run(["gcc", "-c", "k.c", "-o", "k.o"], cwd=tmp_path, check=True)
    for junk, why in (
        (b"", "not an ELF"),
        (b"#!/bin/sh\n" * 99, "not an ELF"),
        (other_machine, "not built for this machine"),
        ((tmp_path / "k.o").read_bytes(), "not a shared library"),
        (data[:100], "outside the file"),
    ):
        assert why in shared_object.check(junk, "wanted")


def test_damaged_libraries_end_in_an_answer(library: Path) -> None:
    data = library.read_bytes()
    rng = random.Random(5)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 12)):
            damaged[rng.randrange(min(len(data), 1200))] = rng.randrange(256)
        assert isinstance(shared_object.check(bytes(damaged), "wanted"), str)
        assert isinstance(shared_object.check(bytes(damaged[: rng.randrange(len(data))]), "wanted"), str)
