"""The node's proof of itself: bounds on readings handed in, /proc and /sys written here, one real look."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcagent_bench import config, owed, results_db, translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.harness import grade_under, recording, scoring
from hpcagent_bench.harness.context import GradingContext
from hpcagent_bench.harness.machine import node_loops
from hpcagent_bench.harness.machine.node import LookFile, NodeNotReady, NodeWatch, excesses
from hpcagent_bench.harness.machine.node_loops import CoreTimes
from hpcagent_bench.harness.machine.node_readings import Machine, Readings, self_ratio, share, ticks
from hpcagent_bench.harness.references import JudgeFault
from hpcagent_bench.harness.seeds import GradingSeeds
from hpcagent_bench.harness.submission import Submission

KERNEL = spec.load("tsvc_2_vtvtv")

QUIET = Readings(
    at=0.0,
    chain_ns=5e6,
    sweep_ns=2e6,
    self_ratio=1.003,
    foreign=0.004,
    steal=0.0,
    sibling=0.02,
    running=0.1,
    memory_gb=30.0,
)


class Told:
    """A reader that says what it is told, the last look for ever, and counts the looks."""

    def __init__(self, *looks: Readings) -> None:
        self.looks = list(looks)
        self.count = 0

    def read(self) -> Readings:
        self.count += 1
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def neighbours(self) -> tuple[str, ...]:
        return ("loop (77) on core 1 66%",)


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def watch(mode: str, *looks: Readings, **settings: Any) -> tuple[NodeWatch, Told, Clock]:
    judge = config.Judge()
    judge.measurement.node_check = mode
    for key, value in settings.items():
        setattr(judge.measurement, key, value)
    reader, clock = Told(*looks), Clock()
    return NodeWatch(judge, (1,), reader=reader, clock=clock, sleep=clock.sleep), reader, clock


BUSY = dataclasses.replace(QUIET, foreign=0.66)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"foreign": 0.66}, "foreign"),
        ({"steal": 0.12}, "steal"),
        ({"sibling": 0.9}, "sibling"),
        ({"running": 4.0}, "load"),
        ({"memory_gb": 0.2}, "memory"),
        ({"self_ratio": 1.3}, "noise"),
        ({"chain_ns": 5e6 * 1.5}, "drift"),
        ({"sweep_ns": 2e6 * 2}, "drift"),
    ],
)
def test_each_reading_beyond_its_bound_is_named(change: dict[str, Any], cause: str) -> None:
    found = excesses(dataclasses.replace(QUIET, **change), QUIET, config.Measurement())
    assert [excess.cause for excess in found] == [cause]


def test_a_quiet_node_passes_without_a_word() -> None:
    quiet, reader, _ = watch("wait", QUIET)
    assert quiet.require() == ""
    assert reader.count == 1
    assert quiet.readings()["causes"] == []


def test_two_neighbours_on_the_timed_core_make_the_grade_owed_with_its_reason() -> None:
    busy, reader, clock = watch("wait", BUSY, node_wait_s=30.0)
    with pytest.raises(NodeNotReady) as caught:
        busy.require()
    text = str(caught.value)
    assert text.startswith("infra: node time of a timed core used by others 66.0%, at most 5.0%")
    assert "loop" not in text  # grades, which agents read, name no process; the record does
    assert busy.readings()["neighbours"] == ["loop (77) on core 1 66%"]
    assert text.endswith("waited 30 s")
    assert isinstance(caught.value, JudgeFault)
    assert clock.now == 1030.0  # bounded, and used up
    assert reader.count > 2


def test_a_neighbour_that_leaves_is_waited_out() -> None:
    busy, reader, clock = watch("wait", BUSY, BUSY, QUIET)
    assert busy.require() == ""
    assert reader.count == 3
    assert 1000 < clock.now <= 1000 + config.Measurement().node_wait_s


def test_an_owed_grade_does_not_let_the_next_one_through() -> None:
    busy, reader, _ = watch("wait", BUSY, node_wait_s=1.0)
    for _ in range(2):
        with pytest.raises(NodeNotReady):
            busy.require()
    assert reader.count >= 4


def test_record_mode_notes_and_goes_on() -> None:
    busy, reader, clock = watch("record", BUSY)
    assert busy.require().startswith("node time of a timed core used by others 66.0%")
    assert busy.require() == busy.note  # every grade of the hour carries it
    assert (reader.count, clock.now) == (1, 1000.0)


def test_off_never_looks() -> None:
    nothing, reader, _ = watch("off", BUSY)
    assert nothing.require() == ""
    assert reader.count == 0
    assert nothing.readings() == {}


def test_it_looks_again_after_an_hour_and_not_before() -> None:
    hourly, reader, clock = watch("wait", QUIET)
    for seconds, looks in ((0, 1), (3599, 1), (1, 2), (10, 2)):
        clock.now += seconds
        hourly.require()
        assert reader.count == looks


def test_drift_is_against_the_best_so_far_however_slowly_it_creeps() -> None:
    """Ten steps of 3 %: no step exceeds the bound, their sum does (1.03^10 = 1.34)."""
    looks = [dataclasses.replace(QUIET, chain_ns=5e6 * 1.03**k) for k in range(11)]
    creeping, _, _ = watch("record", *looks)
    for _ in range(8):
        assert not creeping.look()  # 1.03^7 = 1.23
    assert [excess.cause for excess in creeping.look()] == ["drift"]  # 1.03^8 = 1.27


def test_a_node_that_got_faster_is_measured_against_its_new_self() -> None:
    slow = dataclasses.replace(QUIET, chain_ns=9e6)
    node, _, _ = watch("record", slow, QUIET, slow)
    assert not node.look()
    assert not node.look()
    assert [excess.cause for excess in node.look()] == ["drift"]


def test_a_reference_against_itself_is_even_against_odd_runs() -> None:
    core = CoreTimes(1, (10, 12, 10, 12, 10, 12), (4, 4, 4, 4), 0.0)
    assert self_ratio([core]) == pytest.approx(1.2)
    assert self_ratio([CoreTimes(1, (7,) * 6, (), 0.0)]) == 1.0


@pytest.fixture(scope="module")
def context() -> Iterator[GradingContext]:
    settings = config.Judge()
    settings.measurement.denominator.loop_level_reasoning = "c"
    settings.measurement.node_wait_s = 1.0
    made = GradingContext(settings, config.Sizes("tiny", 2**18), (0,), GradingSeeds(1, 2, 3))
    yield made
    made.close()


def graded_on(context: GradingContext, mode: str, look: Readings, route: str = "submit") -> scoring.Verdict:
    """A grade of the reference on a node that reads ``look``."""
    context.settings.measurement.node_check = mode
    clock = Clock()
    watching = NodeWatch(context.settings, (0,), reader=Told(look), clock=clock, sleep=clock.sleep)
    context._node = watching
    submission = Submission(KERNEL, "c", translators.emit(KERNEL, "c"))
    grade = grade_under.submit_grade if route == "submit" else grade_under.score_grade
    return grade(context, submission)


def test_a_submit_on_a_busy_node_is_the_judges_fault_and_never_a_number(context: GradingContext) -> None:
    verdict = graded_on(context, "wait", BUSY)
    assert (verdict.status, verdict.fault, verdict.solved) == ("score_error", True, False)
    assert verdict.reason.startswith("infra: node ")
    assert verdict.inputs == ()  # nothing was timed


def test_a_submit_on_a_busy_node_is_owed_with_its_reason(context: GradingContext, tmp_path: Path) -> None:
    """As the judge's desk records it and the planner reads it."""
    verdict = graded_on(context, "wait", BUSY)
    setup = results_db.Setup("t-c-auto", study="t", language="c", harness="autotune")
    episode = results_db.Episode(setup.setup, 7, "t-c-auto.n0.p0.w0", kernel=KERNEL.name)
    row = recording.grade_of(verdict, "submit", context.settings, request_id="r1")
    conn = results_db.create(tmp_path / "shard.db")
    results_db.record(conn, setup, episode, row, recording.final_of(verdict, row))
    conn.close()
    facts = owed.episode_facts(tmp_path / "shard.db")
    (item,) = owed.plan([owed.Work(setup.setup, KERNEL.name)], facts).owed
    assert (item.owed_class, item.reason.startswith("infra: node ")) == ("infra", True)


def test_every_look_is_kept_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    looks = LookFile(tmp_path / "node.jsonl")
    busy, _, _ = watch("record", BUSY)
    busy.keep = looks
    busy.require()
    with looks.path.open("a") as handle:
        handle.write('{"at": 1')
    (kept,) = looks.read()
    assert (kept["causes"], kept["foreign"]) == (["foreign"], 0.66)
    LookFile(tmp_path / "no such folder" / "node.jsonl")({})  # no reason to fail a grade


def test_its_twin_on_a_quiet_node_is_credited(context: GradingContext) -> None:
    verdict = graded_on(context, "wait", QUIET)
    assert (verdict.status, verdict.solved) == ("ok", True), verdict.reason


def test_a_preview_steers_and_waits_for_nothing(context: GradingContext) -> None:
    assert graded_on(context, "wait", BUSY, "score").correct


def stat_file(folder: Path, *cpus: tuple[int, ...], running: int = 3) -> Path:
    """A /proc with these columns per CPU: user nice system idle iowait irq softirq steal guest guest_nice."""
    rows = [f"cpu{core} " + " ".join(map(str, columns)) for core, columns in enumerate(cpus)]
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text("\n".join(["cpu 1 2 3", *rows, "intr 5 0", f"procs_running {running}"]))
    return folder


def test_steal_is_a_share_of_the_worst_core(tmp_path: Path) -> None:
    before = ticks(
        stat_file(tmp_path / "a", (10, 0, 0, 0, 0, 0, 0, 0, 0, 0), (10, 0, 0, 0, 0, 0, 0, 5, 0, 0))
    )
    after = ticks(
        stat_file(tmp_path / "b", (60, 0, 0, 50, 0, 0, 0, 0, 0, 0), (70, 0, 0, 19, 0, 0, 0, 26, 0, 0))
    )
    # core 1: 60 user + 19 idle + 21 stolen = 100 ticks; one tick of the 21 is not told from none
    assert share(before.steal, after.steal, before, after, (0, 1)) == pytest.approx(0.20)
    assert share(before.steal, after.steal, before, after, (0,)) == 0.0
    assert after.running == 3


def test_guest_time_is_not_counted_twice(tmp_path: Path) -> None:
    """proc(5): guest is included in user, guest_nice in nice."""
    found = ticks(stat_file(tmp_path / "p", (100, 10, 5, 50, 5, 1, 1, 8, 90, 9)))
    assert found.total[0] == 100 + 10 + 5 + 50 + 5 + 1 + 1 + 8
    assert found.busy[0] == 100 + 10 + 5 + 1 + 1


def test_an_old_kernel_without_the_steal_column_reads_as_no_steal(tmp_path: Path) -> None:
    assert ticks(stat_file(tmp_path / "p", (1, 2, 3, 4, 5, 6, 7))).steal == {0: 0}


def test_governor_and_turbo_are_read_where_a_driver_tells(tmp_path: Path) -> None:
    system = tmp_path / "cpu"
    (system / "cpu1" / "cpufreq").mkdir(parents=True)
    (system / "cpu1" / "cpufreq" / "scaling_governor").write_text("powersave\n")
    (system / "cpu1" / "cpufreq" / "scaling_cur_freq").write_text("2400000\n")
    (system / "intel_pstate").mkdir()
    (system / "intel_pstate" / "no_turbo").write_text("0\n")
    granted = min(os.sched_getaffinity(0))
    found = Machine((granted,), system=system).read()
    assert found.turbo is True
    if granted == 1:
        assert (found.governor, found.mhz) == ("powersave", 2400.0)
    assert Machine((granted,), system=tmp_path / "none").read().governor is None


@contextlib.contextmanager
def loops_on(core: int, count: int) -> Iterator[list[int]]:
    """Processes that keep ``core`` busy, ended by their ids."""
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nprint('on', flush=True)\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in busy:
            assert process.stdout is not None
            assert process.stdout.readline() == b"on\n"
        yield [process.pid for process in busy]
    finally:
        for process in busy:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def test_two_real_loops_on_the_timed_core_are_seen_and_named() -> None:
    """Three equal tasks share the core: about two thirds of its time is the loops'."""
    core = max(os.sched_getaffinity(0))
    judge = config.Judge()
    judge.measurement.node_check = "wait"
    judge.measurement.node_wait_s = 0.0
    with loops_on(core, 2) as pids:
        watching = NodeWatch(judge, (core,))
        with pytest.raises(NodeNotReady, match="used by others"):
            watching.require()
        assert watching.last is not None
        assert watching.last.foreign > 0.3
        named = " ".join(itertools.chain.from_iterable(watching.reader.neighbours() for _ in range(3)))  # type: ignore[union-attr]
        assert any(f"({pid})" in named for pid in pids)


def test_affinity_of_the_calling_thread_is_left_alone() -> None:
    before = os.sched_getaffinity(0)
    node_loops.time_cores((max(before),), runs=2)
    assert os.sched_getaffinity(0) == before


def test_the_peak_is_measured_once_and_scales_with_the_cores() -> None:
    core = max(os.sched_getaffinity(0))
    one = NodeWatch(config.Judge(), (core,)).peak_gbps
    assert one > 1.0  # any processor since 1999 fills its first cache faster
    assert NodeWatch(config.Judge(), (core, core)).peak_gbps == 2 * one
