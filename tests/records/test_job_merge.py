"""A job's shards and token records become its results; the jobs' results become the run's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from records_help import (  # type: ignore[import-not-found, unused-ignore]
    SETUP,
    dump,
    episode,
    make_job,
    submit,
    token_record,
)

from hpcagent_bench.cluster.merge_results import MERGE_FAILED, merge_job, merge_run
from hpcagent_bench.errors import UserError
from hpcagent_bench.results_db import create, merge, open_ro


def episodes(path: Path) -> list[tuple[object, ...]]:
    columns = "job, kernel, returncode, cancelled, relaunches, effective_tokens"
    rows = open_ro(path).execute(f"SELECT {columns} FROM episodes ORDER BY job, kernel")
    return [tuple(row) for row in rows]


def test_a_job_folds_its_token_records_into_its_episodes(tmp_path: Path) -> None:
    job = make_job(tmp_path, 100001)
    folder = job / "agents" / "node-0" / "problem-1-worker-1"
    told = token_record(episode(1), returncode=124, cancelled=True, attempts=3, tokens_effective=77, turns=4)
    (folder / "tokens.json").write_text(json.dumps(told))
    assert merge_job(job) == job / "results.db"
    assert episodes(job / "results.db") == [(100001, "k0", 123, 0, 0, None), (100001, "k1", 124, 1, 2, 77)]
    before = dump(job / "results.db")
    merge_job(job)
    assert dump(job / "results.db") == before


def test_an_agent_that_never_called_the_judge_gets_its_episode(tmp_path: Path) -> None:
    job = make_job(tmp_path, 100001)
    (job / "judge" / "rank-0" / "hpcagent_bench0.db").unlink()
    merge_job(job)
    assert [row[:3] for row in episodes(job / "results.db")] == [(100001, "k0", 123), (100001, "k1", 123)]
    setup = open_ro(job / "results.db").execute("SELECT setup, harness, temperature FROM setups").fetchone()
    assert tuple(setup) == (SETUP.setup, "autotune", None)


def forged(job: Path, how: str) -> None:
    path = job / "agents" / "node-0" / "problem-0-worker-0" / "tokens.json"
    path.unlink()
    if how == "other":
        path.write_text(json.dumps(token_record(episode(1), cancelled=True)))
    elif how == "link":
        path.symlink_to(job / "agents" / "node-0" / "problem-1-worker-1" / "tokens.json")
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.write_text({"torn": '{"episode_id": "q', "list": "[]", "count": '{"turns": 1e300}'}[how])


@pytest.mark.parametrize("how", ["other", "link", "pipe", "torn", "list", "count"])
def test_a_forged_or_broken_token_record_changes_nobody_and_stops_nothing(tmp_path: Path, how: str) -> None:
    job = make_job(tmp_path, 100001)
    forged(job, how)
    merge_job(job)
    assert [row[1:4] for row in episodes(job / "results.db")] == [("k0", None, None), ("k1", 123, 0)]


def test_a_corrupt_shard_leaves_a_marker_and_all_other_rows(tmp_path: Path) -> None:
    job = make_job(tmp_path, 100001)
    bad = job / "judge" / "rank-1" / "hpcagent_bench1.db"
    bad.parent.mkdir()
    bad.write_text("garbage " * 100)
    with pytest.raises(UserError, match=r"1 judge shard\(s\) not merged.*hpcagent_bench1\.db"):
        merge_job(job)
    assert "hpcagent_bench1.db" in (job / MERGE_FAILED).read_text()
    assert len(episodes(job / "results.db")) == 2
    bad.write_text("")
    merge_job(job)
    assert not (job / MERGE_FAILED).exists()


def test_a_run_takes_merged_jobs_and_those_that_died_before_merging(tmp_path: Path) -> None:
    merge_job(make_job(tmp_path, 100001))
    dead = make_job(tmp_path, 100002, tokens=False)
    (tmp_path / "waves").mkdir()
    (tmp_path / "code").mkdir()
    report = merge_run(tmp_path)
    assert [row[:3] for row in episodes(tmp_path / "results.db")] == [
        (100001, "k0", 123),
        (100001, "k1", 123),
        (100002, "k0", None),
        (100002, "k1", None),
    ]
    assert (report.skipped, report.added["grades"]) == ([], 8)
    assert not (dead / "results.db").exists()


def test_an_unchanged_job_is_not_read_again_and_a_changed_one_is(tmp_path: Path) -> None:
    merge_job(make_job(tmp_path, 100001))
    live = make_job(tmp_path, 100002)
    merge_run(tmp_path)
    assert [path.name for path in merge_run(tmp_path).unchanged] == ["100001", "100002"]
    submit(create(live / "judge" / "rank-0" / "hpcagent_bench0.db"), episode(0, 100002), ts_ms=2000)
    report = merge_run(tmp_path)
    assert ([path.name for path in report.unchanged], report.added["grades"]) == (["100001"], 2)
    whole = dump(tmp_path / "results.db")
    (tmp_path / "results.db").unlink()
    merge_run(tmp_path)
    assert dump(tmp_path / "results.db") == whole


def test_a_job_whose_merge_failed_gives_its_shards(tmp_path: Path) -> None:
    job = make_job(tmp_path, 100001)
    (job / "results.db").write_text("half a database")
    (job / MERGE_FAILED).write_text("disk full")
    report = merge_run(tmp_path)
    assert [path.name for path, _ in report.skipped] == ["results.db"]
    assert len(episodes(tmp_path / "results.db")) == 2


def test_a_job_merge_killed_half_way_loses_nothing(tmp_path: Path) -> None:
    job = make_job(tmp_path, 100001, problems=(0, 1, 2))
    merge(job / "results.db", [])
    conn = create(job / "results.db")
    submit(conn, episode(0, 100001))
    conn.close()
    os.utime(job / "results.db", (4e9, 4e9))
    assert merge_run(tmp_path).added["grades"] == 6
    assert [row[1:3] for row in episodes(tmp_path / "results.db")] == [("k0", 123), ("k1", 123), ("k2", 123)]


def test_no_run_folder_and_a_broken_run_database_are_one_line_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run folder"):
        merge_run(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "results.db").write_text("not a database at all")
    with pytest.raises(UserError, match="delete this file"):
        merge_run(tmp_path)
