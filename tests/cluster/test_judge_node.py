"""A judge that waits for its node, over HTTP: a submit is owed and not spent, a preview goes on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from judge_rig import Judge, file_token

KERNEL = "tsvc_2_vtvtv"


def test_a_node_out_of_bounds_spends_no_submission(tmp_path: Path) -> None:
    """No share of a core is below zero, so this bound is never met."""
    file_token(tmp_path, "t0", KERNEL)
    bounds = {
        "measurement.node_check": "wait",
        "measurement.node_wait_s": 0.0,
        "measurement.node_max_foreign": -1.0,
    }
    judge = Judge(tmp_path, settings=bounds)
    try:
        assert judge.post("/score", "t0", KERNEL).json()["correct"]
        answers = [judge.post("/submit", "t0", KERNEL) for _ in range(2)]
        folder = judge.shard.parent
        conn = sqlite3.connect(judge.shard)
        rows = conn.execute(
            "SELECT status, reason, credited_speedup FROM grades WHERE kind = 'submit'"
        ).fetchall()
        finals = conn.execute("SELECT count(*) FROM grades WHERE kind = 'final'").fetchone()
        conn.close()
    finally:
        judge.end()
    assert [answer.status_code for answer in answers] != [
        200,
        409,
    ]  # the first did not spend the episode's one
    assert len(rows) == 2
    for status, reason, credit in rows:
        assert (status, credit) == ("score_error", None)
        assert reason.startswith("infra: node time of a timed core used by others")
    assert finals == (0,)
    looks = [json.loads(line) for line in (folder / "node.jsonl").read_text().splitlines()]
    assert [look["causes"] for look in looks if "foreign" not in look["causes"]] == []
    assert len(looks) == 2


def test_its_twin_within_bounds_is_credited(tmp_path: Path) -> None:
    file_token(tmp_path, "t0", KERNEL)
    bounds = {
        f"measurement.node_max_{name}": 1e9 for name in ("foreign", "steal", "sibling", "running", "noise")
    }
    judge = Judge(
        tmp_path, settings={**bounds, "measurement.node_check": "wait", "measurement.node_min_memory_gb": 0.0}
    )
    try:
        assert judge.post("/submit", "t0", KERNEL).json()["correct"]
        conn = sqlite3.connect(judge.shard)
        credit = conn.execute("SELECT credited_speedup FROM grades WHERE kind = 'final'").fetchone()
        conn.close()
    finally:
        judge.end()
    assert credit is not None
