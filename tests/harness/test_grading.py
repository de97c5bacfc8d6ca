"""Whole grades in process: real compiler, real sealed children, the tiny rung."""

import dataclasses
import re
from collections.abc import Iterator

import pytest

from hpcagent_bench import config, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under, phases, recording, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.references import References
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission

KERNEL = spec.load("tsvc_2_vtvtv")
HEAD = (
    "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n"
    "void tsvc_2_vtvtv_fp64(double *restrict a, const double *restrict b, const double *restrict c, "
    "const int64_t LEN_1D, uint8_t *restrict workspace, const int64_t workspace_size)\n{\n"
)
LOOP = "for (int64_t i = 0; i < LEN_1D; i++) { a[i] = a[i] * b[i] * c[i]; }\n"


@pytest.fixture(scope="module")
def context() -> Iterator[GradingContext]:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.measurement.node_check = "off"
    settings.timeouts.kernel_s_override = 3.0
    made = GradingContext(settings, config.Sizes("tiny", 2**18), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


def submit(context: GradingContext, body: str, language: str = "c") -> scoring.Verdict:
    return grade_under.submit_grade(context, Submission(KERNEL, language, HEAD + body + "}\n"))


def test_reference_is_solved_on_four_inputs_of_four_classes(context: GradingContext) -> None:
    source = translators.emit(KERNEL, "c")
    verdict = grade_under.submit_grade(context, Submission(KERNEL, "c", source))
    assert (verdict.status, verdict.correct, verdict.bracket) == (
        "ok",
        True,
        "sealed-nonce-v1+host-monotonic",
    )
    assert [i.result.cell.size_class for i in verdict.inputs] == ["aligned", "odd", "odd8", "even"]
    assert all(len(i.result.runs.inside) == 5 for i in verdict.inputs)
    assert all(len(i.result.race.baseline) == 5 for i in verdict.inputs if i.result.race)


def test_preview_has_two_inputs_and_is_never_credited(context: GradingContext) -> None:
    verdict = grade_under.score_grade(context, Submission(KERNEL, "c", translators.emit(KERNEL, "c")))
    assert verdict.correct
    assert len(verdict.inputs) == 2
    assert not recording.is_credited(verdict, context.settings)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("a[0] = 1.0;\n", "incorrect", r"input 1 \(aligned.*rep-verify\[warm-up\] a\["),
        (LOOP + "static int n; if (++n == 4) a[LEN_1D - 1] += 1.0;\n", "incorrect", r"rep-verify\[run 3\]"),
        (LOOP + "if (LEN_1D % 2) a[LEN_1D / 2] = 0.0;\n", "incorrect", r"input 2 \(odd"),
        (LOOP + "abort();\n", "incorrect", "SIGABRT"),
        (LOOP + "exit(0);\n", "incorrect", "rep-verify"),
        ("*(volatile double *)b = 1.0;\n" + LOOP, "incorrect", "SIGSEGV"),
        ("sleep(60);\n" + LOOP, "timeout", "timeout"),
        ("this is no C;\n", "build_error", "error"),
    ],
    ids=["wrong", "wrong in run 3", "wrong for odd sizes", "abort", "exit", "writes input", "sleeps", "no C"],
)
def test_failing_submission_names_where_it_failed(
    context: GradingContext, body: str, status: str, reason: str
) -> None:
    verdict = submit(context, body)
    assert verdict.status == status
    assert re.search(reason, verdict.reason), verdict.reason
    assert (verdict.solved, verdict.score.score) == (False, 1.0)


def test_slow_candidate_is_stopped_and_credited_at_most_half(context: GradingContext) -> None:
    context.settings.timeouts.guillotine_floor_s = 0.05
    try:
        verdict = submit(context, LOOP + "usleep(120000);\n")
    finally:
        context.settings.timeouts.guillotine_floor_s = 1.0
    assert verdict.status == "ok"
    assert all((i.result.runs.stopped_at_ns or 0) >= 50e6 for i in verdict.inputs)
    assert all(0 < i.ratio <= 0.5 for i in verdict.inputs)
    for cell in recording.cells_of(verdict):
        assert (cell.correct, cell.suspect, cell.status) == (True, False, "graded")
        assert "graded on one complete run" in (cell.reason or "")


def test_confirmed_slow_down_is_credited_below_one(context: GradingContext) -> None:
    verdict = submit(context, LOOP + "usleep(30000);\n")
    assert verdict.status == "ok"
    assert all(i.ratio < 0.5 for i in verdict.inputs)
    assert verdict.score.score < 0.5


def test_host_grade_that_maps_a_gpu_runtime_is_credited_nothing(context: GradingContext) -> None:
    head = "#include <fcntl.h>\n#include <sys/mman.h>\n"
    mapping = (
        'int fd = open("/tmp/libcuda.so.1", O_RDWR | O_CREAT, 0600); (void)!ftruncate(fd, 4096);\n'
        "mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0); close(fd);\n"
    )
    source = head + HEAD + mapping + LOOP + "}\n"
    verdict = grade_under.submit_grade(context, Submission(KERNEL, "c", source))
    assert (verdict.status, verdict.solved, verdict.suspect) == ("ok", False, True)
    grade = recording.grade_of(verdict, "submit", context.settings, request_id="r")
    assert (grade.device_runtime, grade.suspect, grade.credited_speedup) == ("libcuda.so.1", True, None)


def test_lost_c_reference_is_the_judges_fault(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(References, "_source", lambda *_: HEAD + "abort();\n}\n")
    verdict = submit(context, LOOP)
    assert (verdict.status, verdict.fault, verdict.solved) == ("score_error", True, False)


def test_unsealed_grade_is_stamped_open_and_never_credited() -> None:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.grading.seal = False
    context = GradingContext(settings, config.Sizes("tiny", 2**18), (0,), GradingSeeds(1, 2, 3))
    verdict = submit(context, LOOP)
    context.close()
    assert verdict.correct
    assert verdict.bracket == "open-nonce-v1+host-monotonic"
    grade = recording.grade_of(verdict, "submit", settings, request_id="r")
    assert (grade.correct, grade.credited_speedup) == (True, None)


@pytest.mark.parametrize(
    ("kernel", "share"), [("tsvc_2_vtvtv", 1.0), ("tsvc_2_s311", 0.0)], ids=["every element", "one"]
)
def test_bytes_that_the_reference_changes_are_counted_once_a_shape(
    context: GradingContext, kernel: str, share: float
) -> None:
    """a[i] *= b[i] * c[i] changes all of a; a sum of LEN_1D numbers changes one element."""
    loaded = spec.load(kernel)
    submission = Submission(loaded, "c", translators.emit(loaded, "c"))
    verdict = grade_under.score_grade(context, submission)
    assert verdict.correct, verdict.reason
    for scored in verdict.inputs:
        whole = scored.result.cell.sizes["LEN_1D"] * 8
        found = scored.result.bytes_changed
        assert found is not None
        assert found == pytest.approx(whole, rel=1e-3) if share else found == 8
    before = dict(context.changed_bytes)
    assert grade_under.score_grade(context, submission).correct
    assert context.changed_bytes == before


def test_grade_says_where_its_time_went(context: GradingContext) -> None:
    verdict = grade_under.score_grade(context, Submission(KERNEL, "c", translators.emit(KERNEL, "c")))
    assert {"build", "start", "draw", "load", "call", "compare"} <= set(verdict.phases)
    assert set(verdict.phases) <= set(phases.PHASES)
    assert all(seconds >= 0 for seconds in verdict.phases.values())
    for scored in verdict.inputs:
        assert {"start", "draw", "load", "call", "compare"} <= set(scored.result.phases)
    clocked = sum(sum(i.result.runs.outside) for i in verdict.inputs) / 1e9
    assert (
        verdict.phases["call"] >= clocked
    )  # the candidate's timed runs, and warm-ups and references besides
    assert context.phases.seconds == {}


def test_suspicious_grade_is_recorded_and_not_credited(context: GradingContext) -> None:
    verdict = grade_under.submit_grade(context, Submission(KERNEL, "c", translators.emit(KERNEL, "c")))
    doubted = dataclasses.replace(verdict, suspicion="undefined behaviour: shift by 64")
    assert (doubted.suspect, recording.is_credited(doubted, context.settings)) == (True, False)
    grade = recording.grade_of(doubted, "submit", context.settings, request_id="r")
    assert (grade.suspect, grade.credited_speedup) == (True, None)
