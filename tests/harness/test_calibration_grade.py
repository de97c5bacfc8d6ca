"""A reference timed against itself: what a calibration grade records, and what it leaves alone."""

from collections.abc import Iterator

import pytest

from hpcagent_bench import config
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness import grade_under, recording
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import References
from hpcagent_bench.harness.seeds import GradingSeeds

KERNEL = spec.load("tsvc_2_vtvtv")


@pytest.fixture
def context() -> Iterator[GradingContext]:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.measurement.node_check = "off"
    made = GradingContext(settings, config.Sizes("tiny", 2**16), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("stamp", "own_stamp"), [("mw4x5", "mw4x5-aa"), ("mw4x5-aa", "mw4x5-aa"), ("mwp4x5", "mwp4x5-aa")]
)
def test_reference_is_graded_against_itself(context: GradingContext, stamp: str, own_stamp: str) -> None:
    verdict = grade_under.calibration_grade(context, KERNEL, stamp)
    assert (verdict.status, verdict.solved, verdict.fault) == ("ok", True, False), verdict.reason
    assert verdict.settings.protocol.stamp == own_stamp
    assert verdict.denominator == "c"
    assert [len(i.result.runs.inside) for i in verdict.inputs] == [5] * 4
    assert [sorted(i.result.race.times) for i in verdict.inputs if i.result.race] == [["c"]] * 4
    assert context.memory.timings == {}
    assert context.memory.winners == {}
    assert not recording.is_credited(verdict, context.settings)


def test_nothing_of_an_earlier_grade_is_reused(
    context: GradingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = 0
    start = References.start

    def counted(
        self: References, kernel: Kernel, kind: str, family: str = "gcc", *, own: bool = False
    ) -> Child:
        nonlocal started
        started += 1
        return start(self, kernel, kind, family, own=own)

    monkeypatch.setattr(References, "start", counted)
    for _ in range(2):
        grade_under.calibration_grade(context, KERNEL, "mw4x5")
    assert started == 2 * 4 * 2  # twice, four inputs, two sides


def test_numba_against_itself_runs_in_two_processes(context: GradingContext) -> None:
    context.settings.measurement.denominator.loop_level_reasoning = "best-of(numba,c)"
    verdict = grade_under.calibration_grade(context, KERNEL, "mw4x5")
    assert (verdict.status, verdict.denominator) == ("ok", "numba"), verdict.reason
    assert [i.result.race.winner for i in verdict.inputs if i.result.race] == ["numba"] * 4


def test_preview_protocol_has_no_calibration(context: GradingContext) -> None:
    with pytest.raises(UserError, match="mw2x5 is a preview protocol"):
        grade_under.calibration_grade(context, KERNEL, "mw2x5")
