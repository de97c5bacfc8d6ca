"""What a grade's row says besides its numbers: libraries, interpreters, suspicion, notes, phases."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from regrading import SETUP, episode, honest, judge, listed, rows

from hpcagent_bench import config
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under, recording, sandbox
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.scoring import Verdict
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission
from hpcagent_bench.regrade import worklist
from hpcagent_bench.results_db import Grade, create, record

WHO = episode(0)
KERNEL = spec.load(str(WHO.kernel))


@pytest.fixture(scope="module")
def context() -> Iterator[GradingContext]:
    cores = (max(os.sched_getaffinity(0)),)
    made = GradingContext(judge(), config.Sizes("tiny", 2**18), cores, GradingSeeds(1, 2, 3))
    yield made
    made.close()


@pytest.fixture(scope="module")
def accepted(context: GradingContext) -> Verdict:
    verdict = grade_under.final_grade(context, Submission(KERNEL, "c", honest(KERNEL.name)))
    assert verdict.solved, verdict.reason
    return verdict


def row_of(verdict: Verdict, context: GradingContext) -> Grade:
    return recording.grade_of(verdict, "submit", context.settings, request_id="r")


def test_a_library_is_recorded_by_its_digest_and_can_not_be_graded_again(
    context: GradingContext, tmp_path: Path
) -> None:
    built = sandbox.build(honest(KERNEL.name), "c", KERNEL.symbol, tmp_path, timeout_s=60)
    assert built.library is not None
    submission = Submission(KERNEL, "c", "", source_mode="library", library=built.library)
    verdict = grade_under.final_grade(context, submission)
    grade = row_of(verdict, context)
    digest = hashlib.blake2b(built.library.read_bytes(), digest_size=16).hexdigest()
    assert verdict.correct, verdict.reason
    assert (grade.sources, grade.source_mode) == ((), "library")
    assert f"library blake2b {digest}" in str(grade.detail)
    with contextlib.closing(create(tmp_path / "results.db")) as conn:
        record(conn, SETUP, WHO, grade)
    found = listed(tmp_path / "results.db")
    assert (found.items, dict(found.left_out)) == (
        [],
        {"a library is not kept: its episode is owed again": 1},
    )


def test_a_python_delivery_names_what_ran_it(context: GradingContext) -> None:
    arguments = ", ".join(KERNEL.arg_order)
    source = f"import numpy as np\n\ndef {KERNEL.function}({arguments}):\n    pass\n"
    verdict = grade_under.final_grade(context, Submission(KERNEL, "python", source))
    commands = list(row_of(verdict, context).build_commands or ())
    assert f"python {platform.python_version()}" in commands
    assert {f"{name} {version(name)}" for name in ("numpy", "numba")} <= set(commands)


def test_an_accepted_grade_is_credited_and_says_where_its_time_went(
    accepted: Verdict, context: GradingContext
) -> None:
    grade = row_of(dataclasses.replace(accepted, notes=("sanitizers not applied",)), context)
    assert (grade.credited_speedup, grade.suspect) == (accepted.score.score, False)
    assert "sanitizers not applied" in str(grade.detail)
    assert "seconds: build " in str(grade.detail)
    final = recording.final_of(accepted, grade)
    assert final is not None
    assert (final.status, final.credited_speedup) == ("graded", accepted.score.score)


def test_a_suspect_grade_says_why_and_is_not_credited(accepted: Verdict, context: GradingContext) -> None:
    doubted = dataclasses.replace(accepted, suspicion="undefined behaviour: shift of 64")
    assert not recording.is_credited(doubted, context.settings)
    grade = row_of(doubted, context)
    assert (grade.credited_speedup, grade.score_rule, grade.suspect) == (None, None, True)
    assert "suspect: undefined behaviour: shift of 64" in str(grade.detail)
    later = recording.regraded_final_of(doubted, context.settings, grade.task_hash, "r")
    assert (later.status, later.credited_speedup, later.suspect) == ("graded", None, True)


def test_only_the_credited_protocol_under_seal_is_credited(
    accepted: Verdict, context: GradingContext
) -> None:
    open_ = dataclasses.replace(accepted, bracket="open-nonce-v1+host-monotonic")
    assert not recording.is_credited(open_, context.settings)
    other = dataclasses.replace(context.settings.measurement, credited_protocol="mwp4x5")
    assert not recording.is_credited(accepted, dataclasses.replace(context.settings, measurement=other))
    assert recording.is_credited(accepted, context.settings)


def test_rows_are_read_back_whole(accepted: Verdict, context: GradingContext, tmp_path: Path) -> None:
    grade = row_of(accepted, context)
    with contextlib.closing(create(tmp_path / "a.db")) as conn:
        record(conn, SETUP, WHO, grade, recording.final_of(accepted, grade))
    (row,) = rows(tmp_path / "a.db", "kind = 'submit'")
    assert json.loads(row["build_commands"])[0].startswith("gcc ")
    assert row["task_hash"] == spec.task_fingerprint(KERNEL)
    assert (row["timing_reduction"], row["denominator"], row["preset"]) == ("mw4x5", "c", "tiny")
    assert listed(tmp_path / "a.db").items == []
    (item,) = worklist.build([tmp_path / "a.db"], lambda path: config.Judge()).items
    assert item.reason == "its final grade divides by c, configured is best-of(numba,c)"
