"""Classifying ends, clearing what a crash left, reading what an agent wrote, folding tokens."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hpcagent_agent.driver.attempts import Stop, classify, clear_for_relaunch, next_agent_folder
from hpcagent_agent.driver.files import append_line, read_untrusted, read_untrusted_json, write_atomic
from hpcagent_agent.driver.sockets import socket_folder
from hpcagent_agent.driver.token_cost import Usage, fold
from hpcagent_agent.prompts import SUBMISSION_POLICY, render


@pytest.mark.parametrize(
    ("stop", "code", "record", "expected"),
    [
        (Stop.ITSELF, 0, None, (0, False)),
        (Stop.ITSELF, 0, {"reason": "finished"}, (0, False)),
        (Stop.ITSELF, 1, {"reason": "error"}, (1, False)),
        (Stop.ITSELF, 1, None, (1, True)),
        (Stop.ITSELF, 139, None, (139, True)),
        (Stop.ITSELF, 0, {"reason": "api_timeout"}, (127, True)),
        (Stop.ITSELF, 1, {"reason": "context_overflow"}, (126, False)),
        (Stop.SUBMITTED, 0, None, (123, False)),
        (Stop.DEADLINE, 0, {"reason": "api_timeout"}, (124, False)),
        (Stop.TOKENS, 0, None, (125, False)),
        (Stop.CANCELLED, 0, None, (143, False)),
    ],
)
def test_ends(stop: Stop, code: int, record: dict[str, Any] | None, expected: tuple[int, bool]) -> None:
    ending = classify(stop, code, record)
    assert (ending.returncode, ending.crashed) == expected


def test_closing_record_of_odd_types_is_survived() -> None:
    ending = classify(Stop.ITSELF, 0, {"reason": ["x"], "turns": "many", "detail": {"a": 1}})
    assert (ending.turns, ending.detail) == (None, "{'a': 1}")


def test_clear_keeps_the_ledger_and_renames_transcripts(tmp_path: Path) -> None:
    worker, folder, outside = tmp_path / "w", tmp_path / "agent-0", tmp_path / "outside"
    for path in (worker / "workspace" / "deep", folder / "sub", outside):
        path.mkdir(parents=True)
    kept = ["prompt.txt", "mcp.json", "attempts.jsonl", ".submission-spent", "claude.attempt1.log"]
    for name in [*kept, "claude.log", "usage.jsonl", "harness-end.json", "tokens.json"]:
        (worker / name).write_text(name)
    (outside / "precious").write_text("x")
    (worker / "workspace" / "link").symlink_to(outside)
    (folder / "link").symlink_to(outside)
    (worker / "workspace" / "deep").chmod(0)
    clear_for_relaunch(worker, folder, 2, ["claude.log", "usage.jsonl"])
    expected = sorted([*kept, "claude.attempt2.log", "usage.attempt2.jsonl"])
    assert sorted(p.name for p in worker.iterdir()) == expected
    assert list(folder.iterdir()) == []
    assert (outside / "precious").exists()


def test_agent_folders_count_on_over_the_run(tmp_path: Path) -> None:
    (tmp_path / "shared" / "agent-4").mkdir(parents=True)
    made = [next_agent_folder(tmp_path, tmp_path / "shared", {"problem": n}).name for n in range(2)]
    assert made == ["agent-5", "agent-6"]
    lines = (tmp_path / "agent-folders.jsonl").read_text().splitlines()
    assert lines[0] == '{"folder": "agent-5", "problem": 0}'


def test_untrusted_files(tmp_path: Path) -> None:
    (tmp_path / "good").write_text('{"a": 1}')
    (tmp_path / "link").symlink_to(tmp_path / "good")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("[" * 100000)
    assert read_untrusted_json(tmp_path / "good") == {"a": 1}
    assert [read_untrusted(tmp_path / name) for name in ("link", "pipe", "none", ".")] == [None] * 4
    assert read_untrusted(tmp_path / "good", limit=3) is None
    assert read_untrusted_json(tmp_path / "deep") is None


def test_writes_do_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path / "link", {})
    write_atomic(tmp_path / "link", "new")
    assert ((tmp_path / "victim").read_text(), (tmp_path / "link").read_text()) == ("old", "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "victim"]


def test_perfect_prefix_fold() -> None:
    calls = [
        {"input": 1000, "cached_input": 0, "output": 50, "reasoning": 10},
        {"input": 200, "cached_input": 1000, "output": 20, "reasoning": 0},
        {"input": 300, "cached_input": 100, "output": 5, "reasoning": 5},  # shrank: all of it is fresh
    ]
    # by hand: fresh 1000 + 200 + 400, cached 0 + 1000 + 0, output 60 + 20 + 10, billed their raw sum
    assert fold(calls) == Usage(1600, 1000, 90, 1000 + 1200 + 400 + 90, 3, 1, "usage_jsonl")
    assert fold(calls).effective == 1690
    assert fold([]) == Usage(output_source="none")
    assert fold([{"input": -5, "output": True}]).effective == 0


def test_prompt_names_the_mode_and_the_budget() -> None:
    for mode, policy in SUBMISSION_POLICY.items():
        assert policy in render("tsvc_2_s311", "c", mode, 100.0)
    assert "within 90 seconds" in render("tsvc_2_s311", "c", "single", 100.0)
    assert "No time limit" in render("tsvc_2_s311", "fortran", "multi", None)


def test_sockets_of_a_killed_driver_are_removed_by_the_next() -> None:
    with socket_folder() as dead:
        copy = dead.with_name(f"{dead.name}-dead")
        shutil.copytree(dead, copy)
        with socket_folder() as other:
            assert (dead.is_dir(), other.is_dir(), copy.exists()) == (True, True, False)
    assert not dead.exists()
    assert not other.exists()
