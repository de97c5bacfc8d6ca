"""Merging by natural key: idempotent, order-free, whole files only, nothing lost and nothing twice."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records_help import (  # type: ignore[import-not-found, unused-ignore]
    SETUP,
    dump,
    episode,
    grade,
    submit,
)

from hpcagent_bench.results_db import Episode, Setup, SetupConflict, create, merge, open_ro, record
from hpcagent_bench.results_merge import EMPTY


def shard(path: Path, problems: tuple[int, ...], **more: object) -> Path:
    conn = create(path)
    for problem in problems:
        submit(conn, episode(problem), **more)
    conn.close()
    return path


def test_clashing_ids_of_two_shards_are_remapped(tmp_path: Path) -> None:
    a, b = shard(tmp_path / "a.db", (0, 1)), shard(tmp_path / "b.db", (2, 3), score=3.0)
    report = merge(tmp_path / "all.db", [a, b])
    assert report.added == {
        "setups": 1,
        "episodes": 4,
        "sources": 4,
        "grades": 8,
        "grade_sources": 8,
        "grade_cells": 32,
    }
    whole = shard(tmp_path / "whole.db", (0, 1))
    for problem in (2, 3):
        submit(create(whole), episode(problem), score=3.0)
    assert dump(tmp_path / "all.db") == dump(whole)


def test_merging_again_in_any_order_changes_nothing(tmp_path: Path) -> None:
    files = [shard(tmp_path / f"{n}.db", (n, n + 1), request_id=f"r{n}") for n in range(3)]
    merge(tmp_path / "all.db", files)
    before = dump(tmp_path / "all.db")
    for order in (files, files[::-1]):
        assert sum(merge(tmp_path / "all.db", order).added.values()) == 0
    merge(tmp_path / "again.db", [tmp_path / "all.db"])
    assert dump(tmp_path / "all.db") == before == dump(tmp_path / "again.db")


def test_two_grades_of_one_millisecond_in_two_shards_both_stay(tmp_path: Path) -> None:
    a = shard(tmp_path / "a.db", (0,), request_id="ra")
    b = shard(tmp_path / "b.db", (0,), request_id="rb", score=4.0)
    for _ in range(2):
        merge(tmp_path / "all.db", [a, b])
    rows = open_ro(tmp_path / "all.db").execute(
        "SELECT ts_ms, request_id, credited_speedup FROM grades WHERE kind = 'submit' ORDER BY ts_ms"
    )
    assert [tuple(row) for row in rows] == [(1000, "ra", 2.0), (1001, "rb", 4.0)]
    assert len(dump(tmp_path / "all.db")["grades"]) == 4


def test_what_one_copy_leaves_open_is_filled_from_the_other(tmp_path: Path) -> None:
    bare, full = tmp_path / "bare.db", tmp_path / "full.db"
    record(create(bare), SETUP, Episode(SETUP.setup, 1, "e", kernel="k0"), grade(node=None))
    record(create(full), SETUP, Episode(SETUP.setup, 1, "e", kernel="k0"), grade(node="spr-01"))
    create(full).execute("UPDATE episodes SET returncode = 0, cancelled = 1")
    create(bare).execute("UPDATE episodes SET returncode = 7")
    report = merge(bare, [full])
    row = (
        open_ro(bare)
        .execute("SELECT e.returncode, e.cancelled, g.node FROM episodes e JOIN grades g")
        .fetchone()
    )
    assert (tuple(row), sum(report.added.values())) == ((7, 1, "spr-01"), 0)


def test_a_setup_described_twice_is_refused_and_the_rest_is_merged(tmp_path: Path) -> None:
    a, c = shard(tmp_path / "a.db", (0,)), shard(tmp_path / "c.db", (2,))
    b = tmp_path / "b.db"
    other = Setup(SETUP.setup, study="quick", language="fortran", harness="autotune", temperature=None)
    record(create(b), other, episode(1), grade("k1"))
    with pytest.raises(SetupConflict, match=r"b\.db.*language='c'.*'fortran'"):
        merge(tmp_path / "all.db", [a, b, c])
    labels = [
        row[0] for row in open_ro(tmp_path / "all.db").execute("SELECT kernel FROM episodes ORDER BY 1")
    ]
    assert labels == ["k0", "k2"]


@pytest.mark.parametrize("damage", ["empty", "text", "head", "page", "cut", "version", "rule"])
def test_a_damaged_file_is_named_and_skipped_whole(tmp_path: Path, damage: str) -> None:
    good, bad = shard(tmp_path / "good.db", (0,)), shard(tmp_path / "bad.db", tuple(range(1, 40)))
    conn = create(bad)
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if damage == "version":
        conn.execute("PRAGMA user_version = 4")
    if damage == "rule":
        conn.execute("PRAGMA ignore_check_constraints = ON")
        conn.execute("UPDATE grades SET credited_speedup = -1 WHERE id = (SELECT max(id) FROM grades)")
    conn.close()
    raw = bytearray(bad.read_bytes())
    rng = random.Random(0)
    changed = {
        "empty": b"",
        "text": b"hello " * 3000,
        "head": b"X" * 16 + bytes(raw[16:]),
        "page": bytes(raw[:8192]) + rng.randbytes(len(raw) // 2) + bytes(raw[8192 + len(raw) // 2 :]),
        "cut": bytes(raw[: len(raw) // 2]),
    }
    bad.write_bytes(changed.get(damage, bytes(raw)))
    report = merge(tmp_path / "all.db", [bad, good])
    assert [path.name for path, _ in report.skipped] == ["bad.db"]
    assert (report.skipped[0][1] == EMPTY) == (damage == "empty")
    assert dump(tmp_path / "all.db") == dump(good)


def test_a_shard_is_read_while_its_judge_writes(tmp_path: Path) -> None:
    live = create(tmp_path / "live.db")
    submit(live, episode(0))
    live.execute("BEGIN IMMEDIATE")
    live.execute("DELETE FROM grades")
    report = merge(tmp_path / "all.db", [tmp_path / "live.db"])
    live.execute("ROLLBACK")
    assert (report.skipped, report.added["grades"]) == ([], 2)


def test_a_shard_left_by_a_killed_judge_is_read_with_its_log(tmp_path: Path) -> None:
    live = create(tmp_path / "live.db")
    submit(live, episode(0))
    (tmp_path / "dead").mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"live.db{suffix}", tmp_path / "dead" / f"live.db{suffix}")
    assert merge(tmp_path / "all.db", [tmp_path / "dead" / "live.db"]).added["grades"] == 2


Call = tuple[int, int, int]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)), max_size=12),
    seed=st.integers(0, 99),
)
def test_any_split_merged_in_any_order_any_number_of_times_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, calls: list[Call], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    files = [folder / f"{n}.db" for n in range(3)]
    for number, (which, problem, ts) in enumerate(calls):
        submit(create(files[which]), episode(problem), ts_ms=ts, request_id=f"r{number}")
    rounds = files + files
    random.Random(seed).shuffle(rounds)
    merge(folder / "all.db", [path for path in rounds if path.exists()])
    conn = open_ro(folder / "all.db")
    held = [row[0] for row in conn.execute("SELECT request_id FROM grades WHERE kind = 'submit'")]
    assert sorted(held) == sorted(f"r{n}" for n in range(len(calls)))
    finals = conn.execute(
        "SELECT count(DISTINCT of_grade_id), count(*) FROM grades WHERE kind = 'final'"
    ).fetchone()
    assert tuple(finals) == (len(calls), len(calls))


def test_cells_filled_in_later_reach_the_merged_copy(tmp_path: Path) -> None:
    source = shard(tmp_path / "a.db", (0,))
    merge(tmp_path / "all.db", [source])
    create(source).execute("UPDATE grade_cells SET p_value = 0.004, ratio = 9.0 WHERE cell = 2")
    assert sum(merge(tmp_path / "all.db", [source]).added.values()) == 0
    cells = open_ro(tmp_path / "all.db").execute(
        "SELECT DISTINCT p_value, ratio FROM grade_cells WHERE cell = 2"
    )
    assert [tuple(row) for row in cells] == [(0.004, 2.0)]
