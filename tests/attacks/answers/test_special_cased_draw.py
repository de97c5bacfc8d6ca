"""The draw everybody can compute, from the public seed, recognised by its first values."""

from __future__ import annotations

import pytest
from attack_rig import KERNEL, Rig, refused, version

from hpcagent_bench import config
from hpcagent_bench.corpus import fuzz, spec


@pytest.fixture(scope="module")
def public() -> str:
    """A condition in C: these are the values of the public draw, whatever its size."""
    kernel, seed = spec.load(KERNEL), config.Judge().seeds.input_dist
    drawn = fuzz.drawn(kernel, kernel.presets["S"], value_seed=seed, structural_seed=seed)
    return f"(x[0] == {float(drawn['x'][0]).hex()} && x[1] == {float(drawn['x'][1]).hex()})"


def test_right_for_the_public_draw_alone_is_refused(judge: Rig, public: str) -> None:
    refused(judge.attack(version(f"if {public} HONEST;")), "incorrect", r"rep-verify\[warm-up\]")


def test_wrong_for_the_public_draw_alone_is_refused_by_the_verification(judge: Rig, public: str) -> None:
    verdict = judge.attack(version(f"HONEST; if {public} area[1] = 7.0;"))
    refused(verdict, "incorrect", "independent_verify")


def test_twin_that_looks_at_its_input_is_accepted(judge: Rig, public: str) -> None:
    judge.accepts(version(f"static int seen; if {public} seen++; HONEST;"))
