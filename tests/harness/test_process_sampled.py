"""Grades that sample processes: every timed run of a side in a process of its own, after its own warm-up."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest

from hpcagent_bench import config, protocols, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import grade_under, recording, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import References
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission

KERNEL = spec.load("tsvc_2_vtvtv")
HEAD = (
    "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    "void tsvc_2_vtvtv_fp64(double *restrict a, const double *restrict b, const double *restrict c, "
    "const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)\n{\n"
)
LOOP = "for (int64_t i = 0; i < LEN_1D; i++) { a[i] = a[i] * b[i] * c[i]; }\n"


@pytest.fixture(scope="module")
def context() -> Iterator[GradingContext]:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.measurement.credited_protocol = "mwp4x5"
    settings.measurement.node_check = "off"
    settings.timeouts.kernel_s_override = 3.0
    made = GradingContext(settings, config.Sizes("tiny", 2**16), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


def submit(context: GradingContext, body: str) -> scoring.Verdict:
    return grade_under.submit_grade(context, Submission(KERNEL, "c", HEAD + body + "}\n"))


def test_reference_is_solved_with_five_processes_a_side(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []
    start = References.start

    def counted(
        self: References, kernel: Kernel, kind: str, family: str = "gcc", *, own: bool = False
    ) -> Child:
        asked.append((kind, own))
        return start(self, kernel, kind, family, own=own)

    monkeypatch.setattr(References, "start", counted)
    verdict = grade_under.submit_grade(context, Submission(KERNEL, "c", translators.emit(KERNEL, "c")))
    assert (verdict.status, verdict.solved) == ("ok", True), verdict.reason
    assert verdict.settings.protocol is protocols.PROCESS_FINAL
    assert asked.count(("c", True)) == 20
    for scored in verdict.inputs:
        runs, race = scored.result.runs, scored.result.race
        assert (len(runs.inside), len(runs.cold)) == (5, 5)
        assert race is not None
        assert len(race.baseline) == 5
    assert recording.is_credited(verdict, context.settings)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("static int n; if (++n == 2) a[1] += 1.0;\n" + LOOP, r"rep-verify\[run 1\]"),
        (LOOP + "static int n; if (++n == 3) a[1] += 1.0;\n", r"rep-verify\[canonical\]"),
        ("a[0] = 1.0;\n", r"rep-verify\[warm-up of run 1\]"),
    ],
    ids=["wrong in its second call", "wrong in its third call", "wrong"],
)
def test_a_process_makes_two_calls_and_the_last_one_the_canonical_call_too(
    context: GradingContext, body: str, reason: str
) -> None:
    verdict = submit(context, body)
    assert verdict.status == "incorrect"
    assert re.search(reason, verdict.reason), verdict.reason


def test_nothing_is_carried_from_process_to_process(context: GradingContext) -> None:
    """Wrong from its fourth call on: right in every process here, wrong where one makes all calls."""
    late = LOOP + "static int n; if (++n > 3) a[1] += 1.0;\n"
    verdict = submit(context, late)
    assert [i.result.correct for i in verdict.inputs] == [True] * 4
    context.settings.measurement.credited_protocol = "mw4x5"
    try:
        assert "rep-verify[run 3]" in submit(context, late).reason
    finally:
        context.settings.measurement.credited_protocol = "mwp4x5"


def test_stopped_candidate_is_graded_on_its_warm_up(context: GradingContext) -> None:
    context.settings.timeouts.guillotine_floor_s = 0.05
    try:
        verdict = submit(context, LOOP + "usleep(120000);\n")
    finally:
        context.settings.timeouts.guillotine_floor_s = 1.0
    assert all((i.result.runs.stopped_at_ns or 0) >= 50e6 for i in verdict.inputs)
    assert all(len(i.result.runs.cold) == 1 for i in verdict.inputs)
    assert all(0 < i.ratio <= 0.5 for i in verdict.inputs)
    assert all("graded on one complete run" in i.note for i in verdict.inputs)


def test_timings_are_remembered_by_protocol(context: GradingContext) -> None:
    context.memory.timings.clear()
    submit(context, LOOP)
    context.settings.measurement.credited_protocol = "mw4x5"
    try:
        submit(context, LOOP)
    finally:
        context.settings.measurement.credited_protocol = "mwp4x5"
    known = Counter((key.stamp, key.family) for key in context.memory.timings)
    assert known == {("mwp4x5", "gcc"): 4, ("mw4x5", "gcc"): 4}


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_reference_is_built_by_the_candidates_compiler(context: GradingContext) -> None:
    context.memory.timings.clear()
    source = HEAD + LOOP + "}\n"
    verdict = grade_under.score_grade(context, Submission(KERNEL, "c", source, family="llvm"))
    assert verdict.correct, verdict.reason
    assert {key.family for key in context.memory.timings} == {"llvm"}
    assert {family for kind, family, _ in context.references._libraries if kind == "c"} >= {"llvm"}
