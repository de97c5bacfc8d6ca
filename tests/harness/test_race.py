"""The best-of race with real children: both references are C programs of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcagent_bench import config, protocols
from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.harness import grading, metric, sandbox
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.grading import InputMeasurement, InputResult
from hpcagent_bench.harness.native_call import Child
from hpcagent_bench.harness.references import JudgeFault, References
from hpcagent_bench.harness.seeds import GradingSeeds

KERNEL = spec.load("tsvc_2_vtvtv")
LOOP = "for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i];\n"


class Programs(References):
    """References whose sources a test writes; notes who was started."""

    def prepare(self, folder: Path, bodies: dict[str, str]) -> None:
        self.folder, self.bodies = folder, bodies
        self.started: list[str] = []

    def start(self, kernel: Kernel, kind: str, family: str = "gcc", *, own: bool = False) -> Child:
        head = (
            "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid tsvc_2_vtvtv_fp64("
            "double *a, const double *b, const double *c, int64_t n, uint8_t *w, int64_t s) {\n"
        )
        place = self.folder / f"{kind}-{len(self.started)}"
        place.mkdir()
        built = sandbox.build(head + self.bodies[kind] + "}\n", "c", kernel.symbol, place, timeout_s=60)
        assert built.library is not None
        self.started.append(kind)
        return Child.native(
            built.library,
            self.binding(kernel),
            cores=(0,),
            memory_bytes=None,
            stack_mb=64,
            pool=self.pool,
        )


@pytest.fixture
def context() -> Iterator[GradingContext]:
    settings = config.Judge()
    settings.measurement.early_stop_floor_s = 0.1
    settings.timeouts.kernel_s_override = 2.0
    made = GradingContext(settings, config.Sizes("tiny", 2**16), (0,), GradingSeeds(1, 2, 3))
    programs = Programs(settings, made.cores, made.pool)
    made.references = programs
    yield made
    made.close()


def race(context: GradingContext, folder: Path, c: str, numba: str) -> InputResult:
    assert isinstance(context.references, Programs)
    folder.mkdir(exist_ok=True)
    context.references.prepare(folder, {"c": c, "numba": numba})
    cell = metric.timed_cells_for(KERNEL, context.sizes, context.settings, protocols.FINAL)[0]
    seeds = grading.input_seeds(context, KERNEL, cell, 5, protocols.FINAL)
    return InputMeasurement(context, KERNEL, cell, protocols.FINAL, None).run(seeds)


def test_slow_c_is_cut_after_one_retry_and_numba_answers(context: GradingContext, tmp_path: Path) -> None:
    found = race(context, tmp_path, c=LOOP + "usleep(400000);\n", numba=LOOP).race
    assert found is not None
    assert (found.winner, found.leader, found.leader_source) == ("numba", "numba", "default")
    assert found.cuts == {"c": 100_000_000}
    assert (len(found.baseline), "c" in found.times) == (5, False)
    assert isinstance(context.references, Programs)
    assert context.references.started.count("c") == 2


def test_first_cold_call_of_the_loser_is_not_cut(context: GradingContext, tmp_path: Path) -> None:
    cold = "static int n_calls; if (!n_calls++) usleep(300000);\n"
    found = race(context, tmp_path, c=cold + LOOP, numba=LOOP).race
    assert found is not None
    assert found.cuts == {}
    assert {kind: len(times) for kind, times in found.times.items()} == {"numba": 5, "c": 5}


def test_lost_numba_is_disclosed_and_c_stands_alone(context: GradingContext, tmp_path: Path) -> None:
    found = race(context, tmp_path, c=LOOP, numba="abort();\n").race
    assert found is not None
    assert found.winner == "c"
    assert "SIGABRT" in found.lost["numba"]


def test_lost_c_is_the_judges_fault(context: GradingContext, tmp_path: Path) -> None:
    with pytest.raises(JudgeFault, match="C reference of tsvc_2_vtvtv is lost"):
        race(context, tmp_path, c="abort();\n", numba=LOOP)


def test_remembered_timings_spare_the_reference_that_gives_no_answers(
    context: GradingContext, tmp_path: Path
) -> None:
    slow = LOOP + "usleep(20000);\n"
    first = race(context, tmp_path / "first", c=slow, numba=LOOP).race
    again = race(context, tmp_path / "again", c=slow, numba=LOOP).race
    assert first is not None
    assert again is not None
    assert again.times["numba"] == first.times["numba"]
    assert (again.winner, again.leader_source) == ("numba", "cache")
    assert isinstance(context.references, Programs)
    assert context.references.started == ["c"]


def test_complete_race_waits_for_the_slow_one(context: GradingContext, tmp_path: Path) -> None:
    context.settings.measurement.baseline_race = "complete"
    found = race(context, tmp_path, c=LOOP + "usleep(150000);\n", numba=LOOP).race
    assert found is not None
    assert (found.cuts, len(found.times["c"])) == ({}, 5)
