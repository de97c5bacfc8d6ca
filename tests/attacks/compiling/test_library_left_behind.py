"""A second submission under the same file name: what is loaded is what was handed in, not what lay there."""

from __future__ import annotations

from pathlib import Path

from attack_rig import Rig, refused, version

from hpcagent_bench.harness import sandbox

WRONG = version("HONEST; area[LEN_1D / 2] += 1;")


def test_a_wrong_second_submission_is_graded_wrong(judge: Rig) -> None:
    judge.accepts(version("HONEST;"))
    refused(judge.attack(WRONG), "incorrect", r"rep-verify\[warm-up\] area")


def test_a_right_second_submission_is_graded_right(judge: Rig) -> None:
    refused(judge.attack(WRONG), "incorrect", r"rep-verify\[warm-up\] area")
    judge.accepts(version("HONEST;"))


def test_a_source_that_does_not_compile_leaves_no_older_library_in_its_place(tmp_path: Path) -> None:
    first = sandbox.build(version("HONEST;"), "c", "polygon_area_terms_fp64", tmp_path, timeout_s=60)
    assert first.ok, first.log
    second = sandbox.build("broken", "c", "polygon_area_terms_fp64", tmp_path, timeout_s=60)
    assert (second.ok, second.library) == (False, None)
    assert not list(tmp_path.glob("*.so"))


def test_each_build_has_the_digest_of_its_own_library(judge: Rig) -> None:
    right, wrong = judge.preview(version("HONEST;")), judge.preview(WRONG)
    assert right.build is not None
    assert wrong.build is not None
    assert right.build.digest != wrong.build.digest
