"""The best-of race with real children: both references are C programs of the test's own."""

import dataclasses
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


def race(
    context: GradingContext, folder: Path, *, stamp: str = "mw4x5", autopar: str = "", **bodies: str
) -> InputResult:
    """One input raced under a protocol; bodies of the references by kind."""
    assert isinstance(context.references, Programs)
    folder.mkdir(exist_ok=True)
    context.references.prepare(folder, {**bodies, "c-autopar": autopar})
    protocol = protocols.get(stamp)
    cell = metric.timed_cells_for(KERNEL, context.sizes, context.settings, protocol)[0]
    seeds = grading.input_seeds(context, KERNEL, cell, 5, protocol)
    return InputMeasurement(context, KERNEL, cell, protocol, None).run(seeds)


def name_denominator(context: GradingContext, name: str) -> None:
    context.settings.measurement.denominator.loop_level_reasoning = name


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


def test_loser_that_takes_its_whole_budget_is_lost_not_cut(context: GradingContext, tmp_path: Path) -> None:
    """Where the leader is slow, twice its time is more than any call may take."""
    context.settings.timeouts.kernel_s_override = 0.25
    slow, late = LOOP + "usleep(180000);\n", "static int k; if (k++) usleep(500000);\n" + LOOP
    with pytest.raises(JudgeFault, match=r"C reference of tsvc_2_vtvtv is lost .*timeout"):
        race(context, tmp_path, c=late, numba=slow)


def test_complete_race_waits_for_the_slow_one(context: GradingContext, tmp_path: Path) -> None:
    context.settings.measurement.baseline_race = "complete"
    found = race(context, tmp_path, c=LOOP + "usleep(150000);\n", numba=LOOP).race
    assert found is not None
    assert (found.cuts, len(found.times["c"])) == ({}, 5)


def test_cut_reference_of_a_process_sampled_race_starts_no_further_process_of_its_own(
    context: GradingContext, tmp_path: Path
) -> None:
    """Five processes wait ready; the first is cut in its timed run, then the retry in a sixth."""
    found = race(context, tmp_path, stamp="mwp4x5", c=LOOP + "usleep(300000);\n", numba=LOOP).race
    assert found is not None
    assert (found.winner, found.cuts, len(found.baseline)) == ("numba", {"c": 100_000_000}, 5)
    assert isinstance(context.references, Programs)
    assert (context.references.started.count("c"), context.references.started.count("numba")) == (6, 5)


def test_process_sampled_race_times_one_call_a_process(context: GradingContext, tmp_path: Path) -> None:
    """The second call of a process takes 20 ms or more, a third one a second: only second ones are timed."""
    name_denominator(context, "c")
    body = LOOP + "static int done; done++; usleep(done == 2 ? 20000 : done > 2 ? 1000000 : 0);\n"
    found = race(context, tmp_path, stamp="mwp4x5", c=body, numba=LOOP).race
    assert found is not None
    assert len(found.baseline) == 5
    assert all(20_000_000 <= ns < 1_000_000_000 for ns in found.baseline)


def test_lost_third_kind_is_disclosed(context: GradingContext, tmp_path: Path) -> None:
    name_denominator(context, "best-of(numba,c,c-autopar)")
    found = race(context, tmp_path, c=LOOP, numba=LOOP, autopar="abort();\n").race
    assert found is not None
    assert sorted(found.times) == ["c", "numba"]
    assert "SIGABRT" in found.lost["c-autopar"]


def test_third_kind_wins_where_it_is_fastest_and_gives_no_answers(
    context: GradingContext, tmp_path: Path
) -> None:
    name_denominator(context, "best-of(numba,c,c-autopar)")
    slow = LOOP + "usleep(20000);\n"
    found = race(context, tmp_path, c=slow, numba=slow, autopar="").race  # computes nothing
    assert found is not None
    assert found.winner == "c-autopar"


def test_lost_oracle_that_does_not_race_is_replaced(context: GradingContext, tmp_path: Path) -> None:
    name_denominator(context, "c-autopar")
    found = race(context, tmp_path, c="abort();\n", numba=LOOP, autopar=LOOP).race
    assert found is not None
    assert (found.winner, sorted(found.lost)) == ("c-autopar", ["c"])
    with pytest.raises(JudgeFault, match=r"no reference of tsvc_2_vtvtv can answer: .*SIGABRT"):
        race(context, tmp_path / "none", c="abort();\n", numba="abort();\n", autopar=LOOP)


def test_only_reference_of_the_denominator_lost_is_the_judges_fault(
    context: GradingContext, tmp_path: Path
) -> None:
    name_denominator(context, "numba")
    with pytest.raises(JudgeFault, match="no reference of tsvc_2_vtvtv is left to time"):
        race(context, tmp_path, c=LOOP, numba="abort();\n")


def test_cut_is_remembered_in_the_process_and_spares_the_loser(
    context: GradingContext, tmp_path: Path
) -> None:
    slow = LOOP + "usleep(300000);\n"
    first = race(context, tmp_path / "first", c=slow, numba=LOOP).race
    again = race(context, tmp_path / "again", c=slow, numba=LOOP).race
    assert first is not None
    assert again is not None
    assert again.cuts == first.cuts == {"c": 100_000_000}
    assert isinstance(context.references, Programs)
    assert context.references.started == ["numba"]


def test_oracle_of_scientific_computing_is_the_leader(context: GradingContext) -> None:
    kernel = dataclasses.replace(KERNEL, track="scientific_computing")
    for oracle, leads in (("auto", "numba"), ("c", "c")):
        context.settings.service.oracle = oracle
        cell = metric.timed_cells_for(kernel, context.sizes, context.settings, protocols.FINAL)[0]
        racing = InputMeasurement(context, kernel, cell, protocols.FINAL, None).race
        assert racing._oracle_kinds()[0] == leads
    context.settings.service.oracle = "auto"
    context.memory.winners[(kernel.name, cell.preset, "float64")] = "c"
    assert InputMeasurement(context, kernel, cell, protocols.FINAL, None).race._oracle_kinds() == [
        "c",
        "numba",
    ]
    plain = InputMeasurement(context, KERNEL, cell, protocols.FINAL, None).race
    assert plain._oracle_kinds() == ["c", "numba"]
