"""The attempt loop: codes, markers, relaunching, cancelling, promoting."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_rig import CORRECT, TOKEN, YES, FakeJudge, Run, gone
from hpcagent_agent.driver.settings import SettingsError, load

WaitFor = Callable[[Callable[[], bool]], None]

CLIENT = "from hpcagent_agent.tools.client import JudgeClient as J; j = J();"
CRASH_TWICE = """
import os, pathlib, sys
tries = pathlib.Path(os.environ['TRIES']); n = int(tries.read_text()) if tries.exists() else 0
tries.write_text(str(n + 1))
print('attempt', n + 1, sorted(p.name for p in pathlib.Path('.').iterdir()))
pathlib.Path('left.txt').write_text('mine'); pathlib.Path('shut').mkdir(); pathlib.Path('shut/x').touch()
os.chmod('shut', 0)
pathlib.Path('usage.jsonl').write_text('{"input": 100, "cached_input": 0, "output": 7, "reasoning": 3}\\n')
sys.exit(9 if n < 2 else 0)
"""


def test_single_submission_ends_the_episode(run: Run, judge: FakeJudge) -> None:
    code, out = run.drive(CLIENT + "print(j.submit('int x;')); import time; time.sleep(60)")
    tokens = run.tokens()
    assert (code, tokens["returncode"], tokens["result"]) == (0, 123, "submitted"), out
    assert json.loads((run.worker_dir() / ".submission-spent").read_text()) == YES
    assert [r["auth"] for r in judge.requests] == [f"Bearer {TOKEN}"]
    assert judge.posts("/submit")[0]["source"] == "int x;"
    assert judge.posts("/submit")[0]["optimizer"] == "probe"


def test_agent_that_ends_itself_after_submitting_keeps_its_code(run: Run) -> None:
    run.drive(CLIENT + "j.submit('int x;')", submitted_grace_s=30)
    assert run.tokens()["returncode"] == 0
    assert [line["crashed"] for line in run.ledger()] == [False]


def test_second_submission_is_refused_and_never_reaches_the_judge(run: Run, judge: FakeJudge) -> None:
    two = "a = j.submit('1'); b = j.submit('2'); import httpx, os;"
    evasion = "c = httpx.post(os.environ['JUDGE_URL'] + '/%73ubmit', json={'source': '3'}).status_code;"
    run.drive(CLIENT + two + evasion + "print(a['ok'], b['status'], c)", submitted_grace_s=30)
    assert len(judge.posts("/submit")) == 1
    assert "True 409 409" in (run.worker_dir() / "probe.log").read_text()


def test_a_refused_submit_spends_nothing(run: Run, judge: FakeJudge) -> None:
    fault = {"correct": "no", "request_id": "r0", "judge_fault": True}
    judge.script["/submit"] = [(400, {"error": "no kernel"}), (200, fault), (200, YES)]
    code, _ = run.drive(CLIENT + "[print(j.submit('x').get('ok')) for _ in range(3)]", submitted_grace_s=30)
    assert code == 0
    assert len(judge.posts("/submit")) == 3
    assert (run.worker_dir() / "probe.log").read_text().split() == ["False", "True", "True"]


def test_multi_mode_submits_as_often_as_it_likes(run: Run, judge: FakeJudge) -> None:
    run.drive(CLIENT + "[j.submit(str(i)) for i in range(3)]", submission_mode="multi")
    assert [body["source"] for body in judge.posts("/submit")] == ["0", "1", "2"]
    assert run.tokens()["returncode"] == 0


def test_deadline_stops_the_whole_tree(run: Run) -> None:
    script = "import os, subprocess, time; p = subprocess.Popen(['setsid', 'sleep', '600']);"
    script += "open('pid', 'w').write(str(p.pid)); print(os.environ['AGENT_DEADLINE_MS']); time.sleep(600)"
    code, out = run.drive(script, timeout_s=1.5)
    assert (code, run.tokens()["returncode"]) == (0, 124), out
    assert run.ledger()[0]["crashed"] is False
    assert gone(int((run.worker_dir() / "workspace" / "pid").read_text()))


def test_crashes_are_relaunched_from_a_clean_folder(run: Run, tmp_path: Path) -> None:
    code, out = run.drive(CRASH_TWICE, env={"TRIES": str(tmp_path / "tries")})
    tokens, fresh = run.tokens(), "['.home', 'prompt.txt', 'task']"
    assert (code, tokens["returncode"], tokens["attempts"]) == (0, 0, 3), out
    ended = [(line["returncode"], line["crashed"], line["cleared"]) for line in run.ledger()]
    assert ended == [(9, True, True), (9, True, True), (0, False, False)]
    logs = ["probe.attempt1.log", "probe.attempt2.log", "probe.log"]
    assert [(run.worker_dir() / name).read_text().split(None, 2)[2].strip() for name in logs] == [fresh] * 3
    assert (tokens["tokens_effective"], tokens["tokens_effective_crashed"]) == (110, 220)
    assert tokens["output_source"] == "usage_jsonl"
    assert tokens["final_attempt_start_ms"] == run.ledger()[2]["start_ms"]
    assert sorted(p.name for p in (run.root / "shared").glob("agent-*")) == ["agent-0", "agent-1", "agent-2"]


def test_three_crashes_fail_the_driver(run: Run) -> None:
    code, out = run.drive("import os; os.abort()")
    assert (code, run.tokens()["returncode"], run.tokens()["attempts"]) == (1, 134, 3), out


def test_sigterm_cancels_and_harvests_nothing(run: Run, judge: FakeJudge, wait_for: WaitFor) -> None:
    script = CLIENT + "j.score('int x;'); open('up', 'w').close(); import time; time.sleep(600)"
    process = run.start(run.config(script))
    wait_for((run.worker_dir() / "workspace" / "up").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert (run.worker_dir() / "cancelled").exists()
    assert (run.tokens()["cancelled"], run.tokens()["returncode"]) == (True, 143)
    assert judge.posts("/submit") == []


def test_a_job_that_ends_its_agent_first_still_cancels(run: Run, wait_for: WaitFor) -> None:
    script = "import os, time; open('pid.tmp', 'w').write(str(os.getpid())); os.rename('pid.tmp', 'pid')"
    process = run.start(run.config(script + "; time.sleep(600)"))
    pid = run.worker_dir() / "workspace" / "pid"
    wait_for(pid.exists)
    os.kill(int(pid.read_text()), signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert (run.tokens()["cancelled"], run.tokens()["attempts"]) == (True, 1)


def test_sigterm_after_the_one_submission_cancels_nothing(run: Run, wait_for: WaitFor) -> None:
    script = CLIENT + "j.submit('int x;'); open('up', 'w').close(); import time; time.sleep(600)"
    process = run.start(run.config(script, submitted_grace_s=60))
    wait_for((run.worker_dir() / "workspace" / "up").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert not (run.worker_dir() / "cancelled").exists()
    tokens = run.tokens()
    assert (tokens["cancelled"], tokens["returncode"], tokens["result"]) == (False, 123, "submitted")


def test_sigterm_after_one_of_many_submissions_cancels(run: Run, wait_for: WaitFor) -> None:
    script = CLIENT + "j.submit('int x;'); open('up', 'w').close(); import time; time.sleep(600)"
    process = run.start(run.config(script, submission_mode="multi"))
    wait_for((run.worker_dir() / "workspace" / "up").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert (run.tokens()["cancelled"], run.tokens()["returncode"]) == (True, 143)


def test_killed_driver_leaves_no_agent(run: Run, wait_for: WaitFor) -> None:
    script = "import os, time; open('pid.tmp', 'w').write(str(os.getpid())); os.rename('pid.tmp', 'pid')"
    process = run.start(run.config(script + "; time.sleep(600)"))
    pid = run.worker_dir() / "workspace" / "pid"
    wait_for(pid.exists)
    agent = int(pid.read_text())
    process.kill()
    process.wait()
    wait_for(lambda: gone(agent))


def test_last_correct_score_is_promoted(run: Run, judge: FakeJudge) -> None:
    judge.script["/score"] = [(200, CORRECT), (200, CORRECT), (200, {"correct": False})]
    run.drive(CLIENT + "[j.score(s, build=['-lm']) for s in ('one', 'two', 'three')]")
    (promoted,) = judge.posts("/submit")
    assert (promoted["source"], promoted["optimizer"]) == ("two", "promoted-unsubmitted")
    assert (promoted["build"], promoted["episode_id"]) == (["-lm"], "t-c-x.n0.p0.w0")
    assert json.loads((run.worker_dir() / "promotion.json").read_text())["answer"] == YES
    assert not (run.worker_dir() / ".submission-spent").exists()


def test_a_crashed_attempts_score_is_not_promoted(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    script = CLIENT + "import os, sys; first = not os.path.exists(os.environ['FLAG']);"
    script += "open(os.environ['FLAG'], 'w').close(); first and (j.score('old'), sys.exit(5))"
    run.drive(script, env={"FLAG": str(tmp_path / "flag")})
    assert [line["returncode"] for line in run.ledger()] == [5, 0]
    assert len(judge.posts("/score")) == 1
    assert judge.posts("/submit") == []


def test_blind_mode_harvests_the_workspace(run: Run, judge: FakeJudge) -> None:
    script = CLIENT + "print(j.score('x')['status']); open('tsvc_2_s311.c', 'w').write('int y;')"
    run.drive(script, submission_mode="blind")
    assert "403" in (run.worker_dir() / "probe.log").read_text()
    assert judge.posts("/score") == []
    (harvested,) = judge.posts("/submit")
    assert (harvested["source"], harvested["optimizer"]) == ("int y;", "harvested-workspace")


def test_a_submission_under_way_at_the_deadline_is_waited_for(run: Run, judge: FakeJudge) -> None:
    judge.delay_s = 3.0
    code, out = run.drive(CLIENT + "j.submit('slow')", timeout_s=1.5)
    assert (code, run.tokens()["returncode"]) == (0, 124), out
    assert (run.worker_dir() / ".submission-spent").exists()
    assert len(judge.posts("/submit")) == 1


def test_token_cap(run: Run) -> None:
    script = (
        "import time; open('usage.jsonl', 'w').write('{\"input\": 900, \"output\": 200}\\n'); time.sleep(60)"
    )
    run.drive(script, max_tokens=1000)
    assert (run.tokens()["returncode"], run.tokens()["tokens_effective"]) == (125, 1100)


def test_reference_submits_the_reference_and_counts_no_tokens(run: Run, judge: FakeJudge) -> None:
    code, out = run.drive(["{python}", "-m", "hpcagent_agent.harnesses.reference"], submitted_grace_s=30)
    tokens = run.tokens()
    assert (code, tokens["returncode"], tokens["result"], tokens["turns"]) == (0, 0, "finished", 0), out
    counts = [value for key, value in tokens.items() if key.startswith("tokens") and key != "tokens_thinking"]
    assert (set(counts), tokens["output_source"]) == ({0}, "none")
    assert judge.posts("/submit")[0]["source"] == "void tsvc_2_s311_fp64(void) {}\n"
    assert "correct=yes" not in out
    assert "rc 0, finished, 1 attempt" in out


def test_several_workers_share_the_problems(run: Run, judge: FakeJudge) -> None:
    problem = json.loads(run.config("pass").read_text())["problems"][0]
    many = [{**problem, "id": n, "worker": 0, "token": f"{TOKEN}{n}"} for n in range(5)]
    code, out = run.drive(
        CLIENT + "j.submit('x')", problems=many, workers=2, cpus=sorted(os.sched_getaffinity(0))
    )
    assert (code, out.count("problem ")) == (0, 5), out
    assert sorted(r["auth"] for r in judge.requests) == [f"Bearer {TOKEN}{n}" for n in range(5)]
    assert all(run.tokens(n)["problem"] == str(n) for n in range(5))


def test_unusable_input_is_one_line_and_exit_2(run: Run) -> None:
    code, out = run.drive("pass", problems=[])
    assert (code, out.splitlines()) == (2, [f"{run.root}/driver.json: problems: nothing to run"])

    def refused(harness_name: str = "probe", **changes: Any) -> str:
        path = run.config("pass", **changes)
        path.write_text(path.read_text().replace('"probe"', json.dumps(harness_name)))
        with pytest.raises(SettingsError) as caught:
            load(path)
        return str(caught.value)

    assert "workers: Input should be a valid integer" in refused(workers="many")
    assert "submission_mode: Input should be 'multi', 'single' or 'blind'" in refused(submission_mode="open")
    assert "problem 0 has no seal_argv" in refused(seal={"enabled": True})
    assert "harness.name: String should match pattern" in refused(harness_name="../x")
