"""A judge stopped in the middle of a grade, or with a full disk: no submission is blamed for it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from judge_rig import Judge, file_token
from launching import family, fill, own_disk, until

from hpcagent_bench import owed, results_db
from hpcagent_bench.cluster.merge_results import merge_job

KERNEL = "tsvc_2_vtvtv"
SOURCE = (
    "#include <stdint.h>\n#include <unistd.h>\n"
    "void tsvc_2_vtvtv_fp64(double *a, const double *b, const double *c, const int64_t n, uint8_t *w, "
    "const int64_t s) { usleep(MS * 1000); for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i]; }\n"
)
WORK = owed.Work("t-c-reference", KERNEL)


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    yield from serving(tmp_path)


def serving(run_dir: Path) -> Iterator[Judge]:
    file_token(run_dir, "one", KERNEL)
    made = Judge(run_dir)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait()


class Answer(threading.Thread):
    """A submission under way; ``code`` is None when the judge hung up."""

    def __init__(self, judge: Judge, source: str) -> None:
        super().__init__()
        self._judge, self._source = judge, source
        self.code: int | None = None
        self.body: dict[str, object] = {}

    def run(self) -> None:
        try:
            reply = self._judge.post("/submit", "one", KERNEL, self._source)
        except httpx.HTTPError:
            return
        self.code = reply.status_code
        if self.code == 200:
            self.body = reply.json()


def begin_timing(judge: Judge, call_ms: int = 100) -> Answer:
    asked = Answer(judge, SOURCE.replace("MS", str(call_ms)))
    asked.start()
    progress = judge.run_dir / "judge" / "rank-0" / "progress.json"
    until(lambda: json.loads(progress.read_text()).get("input") == 2, pause_s=0.01)
    return asked


def kinds(judge: Judge) -> list[str]:
    with contextlib.closing(results_db.open_ro(judge.shard)) as conn:
        return [row[0] for row in conn.execute("SELECT kind FROM grades ORDER BY id")]


def test_a_signal_to_every_process_of_a_job_spoils_no_grade(judge: Judge) -> None:
    asked = begin_timing(judge)
    until(lambda: len(family(judge.process.pid)) > 1, pause_s=0.01)  # between two inputs there are none
    for process in family(judge.process.pid):
        if process.pid != judge.process.pid and process.alive():
            os.kill(process.pid, signal.SIGTERM)
    asked.join()
    assert asked.body["correct"] == "yes"


def test_a_stopped_judge_blames_nothing_on_the_submission(judge: Judge) -> None:
    asked = begin_timing(judge, call_ms=1000)  # far from done when the judge's patience ends
    judge.process.terminate()
    judge.process.wait(timeout=60)
    asked.join()
    assert asked.code != 200
    assert kinds(judge) == []


def test_a_grade_that_cannot_be_written_is_none(small_disk: Path) -> None:
    for judge in serving(small_disk):
        asked = begin_timing(judge)
        for n in itertools.count():  # a grade that ends gives back what it built, so more must follow
            fill(small_disk / f"filler-{n}")
            asked.join(0.01)
            if not asked.is_alive():
                break
        assert (asked.code, judge.post("/submit", "one", KERNEL).status_code) == (500, 500)
        for filler in small_disk.glob("filler-*"):
            filler.unlink()
        assert kinds(judge) == []
        assert [item.work for item in plan_of(small_disk).owed] == [WORK]
        assert judge.post("/submit", "one", KERNEL).json()["correct"] == "yes"
        assert kinds(judge) == ["submit", "final"]
        assert plan_of(small_disk).delivered == (WORK,)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with own_disk(tmp_path / "7", megabytes=8):
        yield tmp_path / "7"


def plan_of(job: Path) -> owed.OwedPlan:
    return owed.plan([WORK], owed.episode_facts(merge_job(job)))
