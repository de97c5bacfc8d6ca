"""Inline assembly and vendor intrinsics are allowed and noted; what they compute decides."""

from __future__ import annotations

import platform

import pytest
from attack_rig import Rig, refused, said, version

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly here is for x86_64")

NOTHING = '__asm__ volatile("nop" ::: "memory");'
ADD_ONE = 'double one = 1; __asm__("addsd %1, %0" : "+x"(area[3]) : "x"(one));'


def test_assembly_that_computes_the_right_thing_is_accepted_and_noted(judge: Rig) -> None:
    verdict = judge.accepts(version(NOTHING + "HONEST;"))
    assert any("assembly" in note for note in verdict.notes), said(verdict)


def test_assembly_that_computes_another_thing_is_refused(judge: Rig) -> None:
    refused(judge.attack(version("HONEST;" + ADD_ONE)), "incorrect", r"rep-verify\[warm-up\] area")


@pytest.mark.parametrize(
    "instruction",
    ["hlt", "cli", "in $0x60, %%al", "rdmsr", "mov %%cr0, %%rax", "ud2", "int $0x81", "sysenter"],
)
def test_a_privileged_instruction_is_a_crash(judge: Rig, instruction: str) -> None:
    body = f'__asm__ volatile("{instruction}" ::: "rax", "rcx", "rdx", "memory"); HONEST;'
    refused(judge.attack(version(body)), "incorrect", r"rep-verify\[warm-up\] crash")


def test_a_32_bit_system_call_is_not_let_through(judge: Rig) -> None:
    body = '__asm__ volatile("int $0x80" :: "a"(20) : "memory"); HONEST;'
    refused(judge.attack(version(body)), "incorrect", r"rep-verify\[warm-up\] crash")


def test_twin_without_it_has_no_such_note(judge: Rig) -> None:
    assert not any("assembly" in note for note in judge.accepts(version("HONEST;")).notes)
