"""Many previews in a row: the judge ends with what it began with, but for its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from judge_rig import Judge, file_token
from launching import family

from hpcagent_bench import translators
from hpcagent_bench.corpus import spec

KERNEL = "tsvc_2_vtvtv"
WARM_UP = 6
"""Calls until every cache, pool and arena is as large as it gets."""
NOISE_MB = 24
"""What an allocator may keep or give back between two looks."""
SLOPE_MB = 0.05
"""Growth a call beyond noise: a leak of one small object per call is a tenth of this."""


@dataclass(frozen=True)
class Held:
    """What a process holds; ``memory_mb`` is resident and its own."""

    descriptors: int
    processes: int
    threads: int
    shared: int
    files: int
    memory_mb: float


def held(judge: Judge) -> Held:
    pid = judge.process.pid
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts = {line.split(":")[0]: line.split(":")[1].split() for line in status}
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    work = judge.shard.parent / "work"
    return Held(
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        processes=len(family(pid)),
        threads=int(facts["Threads"][0]),
        shared=sum("memfd:" in line or "/dev/shm" in line for line in maps),
        files=sum(1 for folder in (work, judge.run_dir / "tmp") for _ in folder.rglob("*")),
        memory_mb=(int(facts["RssAnon"][0]) + int(facts["RssShmem"][0])) / 1024,
    )


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))  # its temporary files alone
    file_token(tmp_path, "one", KERNEL, "multi")
    made = Judge(tmp_path)
    yield made
    made.end()


def scores(judge: Judge, calls: int) -> tuple[Held, Held]:
    """What the judge holds after the warm-up, and after ``calls`` more: right, wrong and broken sources."""
    good = translators.emit(spec.load(KERNEL), "c")
    sources = (good, good.replace("* c[i]", "* c[i] + 1"), "nonsense")
    before = None
    for n in range(WARM_UP + calls):
        if n == WARM_UP:
            before = held(judge)
        answer = judge.post("/score", "one", KERNEL, f"{sources[n % 3]}/* {n} */", request_id=f"n{n}")
        assert answer.json()["correct"] is (n % 3 == 0)
    assert before is not None
    return before, held(judge)


def check(before: Held, after: Held, calls: int) -> None:
    for name in ("descriptors", "processes", "threads", "shared", "files"):
        assert getattr(after, name) <= getattr(before, name) + 2, f"{name}: {before} then {after}"
    assert after.memory_mb <= before.memory_mb + NOISE_MB + SLOPE_MB * calls, f"{before} then {after}"


def test_scores_in_a_row_leave_nothing_behind(judge: Judge) -> None:
    check(*scores(judge, 15), 15)


@pytest.mark.bench
@pytest.mark.timeout(3600)
def test_a_thousand_scores_in_a_row_leave_nothing_behind(judge: Judge) -> None:
    before, after = scores(judge, 1000)
    print(f"\nafter the warm-up {before}\nafter 1000 more   {after}")
    check(before, after, 1000)
