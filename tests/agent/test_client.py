"""The client and its shell twin: what they send, and what they make of refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_rig import CORRECT, YES, FakeJudge
from hpcagent_agent.tools import cli
from hpcagent_agent.tools.client import JudgeClient, spends_submission

ENV = {"KERNEL": "tsvc_2_s311", "JUDGE_RANK": "3", "HPCAGENT_BENCH_EPISODE_ID": "a.n0.p1.w0"}


@pytest.fixture
def client(judge: FakeJudge, tmp_path: Path) -> JudgeClient:
    marker = str(tmp_path / ".submission-spent")
    usage = str(tmp_path / "usage.jsonl")
    env = {**ENV, "AGENT_SUBMISSION_MARKER": marker, "AGENT_WORKDIR": str(tmp_path)}
    return JudgeClient(judge.url, environ={**env, "HPCAGENT_BENCH_USAGE_PATH": usage}, optimizer="me")


def test_score_sends_what_the_tool_adds(client: JudgeClient, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "usage.jsonl").write_text(
        '{"input": 50, "output": 5}\n{"input": 10, "cached_input": 50, "outp'
    )
    assert client.score("int x;", build=["-lm"], libraries=None) == {"ok": True, **CORRECT}
    sent = {"kernel": "tsvc_2_s311", "language": "c", "rank": 3, "episode_id": "a.n0.p1.w0", "tokens": 55}
    assert judge.posts("/score") == [{**sent, "source": "int x;", "build": ["-lm"], "optimizer": "me"}]
    assert json.loads((tmp_path / ".last-correct-score.json").read_text())["source"] == "int x;"


def test_source_file_is_read_here_and_names_its_language(
    client: JudgeClient, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "k.f90").write_text("end\n")
    client.score(source_file=str(tmp_path / "k.f90"))
    (body,) = judge.posts("/score")
    assert (body["source"], body["language"]) == ("end\n", "fortran")
    assert "source_file" not in body
    assert "No such file" in client.score(source_file=str(tmp_path / "no.c"))["error"]
    assert "must end in one of" in client.score(source_file="k.F90")["error"]


def test_refusals_are_results(client: JudgeClient, judge: FakeJudge) -> None:
    judge.script["/score"] = [(403, {"detail": "blind"}), (422, {"detail": [{"loc": ["x"]}]})]
    assert client.score("x") == {"ok": False, "status": 403, "error": "blind", "body": {"detail": "blind"}}
    assert client.score("x")["error"] == '[{"loc": ["x"]}]'
    assert "exactly one of" in client.score()["error"]
    assert "exactly one of" in client.submit("x", source_file="y.c")["error"]
    judge.close()
    gone = client.score("x")
    assert (gone["ok"], gone["status"]) == (False, 0)


def test_only_a_grade_spends_the_submission(client: JudgeClient, judge: FakeJudge, tmp_path: Path) -> None:
    judge.script["/submit"] = [(409, {"error": "spent"}), (200, {**YES, "judge_fault": True}), (200, YES)]
    spent = []
    for _ in range(3):
        client.submit("x")
        spent.append((tmp_path / ".submission-spent").exists())
    assert spent == [False, False, True]
    assert spends_submission(200, {"correct": "no"})
    assert not spends_submission(400, {"correct": "no"})
    assert not spends_submission(200, "correct")


def test_environment_is_checked() -> None:
    with pytest.raises(ValueError, match="JUDGE_URL is not set"):
        JudgeClient(environ={"KERNEL": "k"})
    with pytest.raises(ValueError, match="KERNEL is not set"):
        JudgeClient("http://127.0.0.1:1", environ={})


def test_shell_twin(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for key, value in {**ENV, "JUDGE_URL": judge.url}.items():
        monkeypatch.setenv(key, value)
    (tmp_path / "x.c").write_text("int x;")
    assert cli.main(["score", json.dumps({"source_file": str(tmp_path / "x.c")})]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, **CORRECT}
    judge.script["/submit"] = [(400, {"error": "no"})]
    assert cli.main(["submit", '{"source": "x"}']) == 1
    assert cli.main(["--list"]) == 0
    bad = [
        [],
        ["scores"],
        ["score", "{"],
        ["score", "[]"],
        ["score", '{"sauce": "x"}'],
        ["score", "{}", "{}"],
    ]
    assert [cli.main(argv) for argv in bad] == [2] * len(bad)


def test_shell_twin_without_a_judge_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_URL", raising=False)
    assert cli.main(["health"]) == 2
