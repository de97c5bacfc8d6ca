"""A sealed agent reaches the judge through its socket, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from agent_rig import TOKEN, FakeJudge, Run

from hpcagent_bench import seal

CORPUS = Path(__file__).resolve().parents[2] / "hpcagent_bench"

PROBE = """
import json, os, pathlib, socket
from hpcagent_agent.tools.client import JudgeClient
found = {}
with JudgeClient() as judge:
    found['submit'] = judge.submit('int x;')
port = int(os.environ['HOST_PORT'])
for name, address in (('judge', ('127.0.0.1', port)), ('out', ('192.0.2.1', 80))):
    try:
        socket.create_connection(address, 2).close()
        found[name] = 'reached'
    except OSError as error:
        found[name] = type(error).__name__
found['host'] = [p for p in (os.environ['RUN_DIR'], '/etc/passwd', os.environ['CORPUS']) if os.path.exists(p)]
words = [str(dict(os.environ)), pathlib.Path('/proc/self/environ').read_text()]
words += [(p / 'environ').read_text() for p in pathlib.Path('/proc').iterdir() if p.name.isdigit()]
found['words'] = ''.join(words)
found['files'] = sorted(os.listdir('.'))
pathlib.Path('found.json').write_text(json.dumps(found))
"""


def test_sealed_agent_sees_only_its_workspace_and_the_judge(
    run: Run, judge: FakeJudge, seal_argv: list[str]
) -> None:
    env = {"HOST_PORT": judge.url.rsplit(":", 1)[1], "RUN_DIR": str(run.root), "CORPUS": str(CORPUS)}
    settings = {"enabled": True, "argv": seal_argv}
    code, out = run.drive(PROBE, env=env, seal=settings, submitted_grace_s=30)
    log = (run.worker_dir() / "probe.log").read_text()
    assert code == 0, out + log
    found = json.loads((run.worker_dir() / "workspace" / "found.json").read_text())
    assert found["submit"]["correct"] == "yes"
    assert (found["judge"], found["out"]) == ("ConnectionRefusedError", "OSError")
    assert found["host"] == []
    assert TOKEN not in found["words"]
    assert found["files"] == [".home", ".submission-spent", "prompt.txt", "task"]
    assert [r["auth"] for r in judge.requests] == [f"Bearer {TOKEN}"]


def test_reference_runs_under_the_projects_own_seal(run: Run, judge: FakeJudge) -> None:
    prefix = seal.agent(workdir=Path("{workdir}"), env={}, judge_socket=Path("{socket}"))
    problem = json.loads(run.config("pass").read_text())["problems"][0]
    problems = [{**problem, "seal_argv": prefix}]
    argv = ["{python}", "-m", "hpcagent_agent.harnesses.reference"]
    code, out = run.drive(argv, problems=problems, seal={"enabled": True}, submitted_grace_s=30)
    assert (code, run.tokens()["result"]) == (0, "finished"), (
        out + (run.worker_dir() / "probe.log").read_text()
    )
    assert judge.posts("/submit")[0]["source"] == "void tsvc_2_s311_fp64(void) {}\n"


def test_deadline_ends_everything_in_the_seal(run: Run, seal_argv: list[str]) -> None:
    name = f"agent-{run.root.name}"
    script = (
        f"import subprocess, time; subprocess.Popen(['setsid', 'bash', '-c', 'exec -a {name} sleep 600']);"
    )
    run.drive(script + "time.sleep(600)", seal={"enabled": True, "argv": seal_argv}, timeout_s=2)
    assert run.tokens()["returncode"] == 124
    commands = [p / "cmdline" for p in Path("/proc").iterdir() if p.name.isdigit()]
    assert not [p for p in commands if p.exists() and p.read_bytes().startswith(name.encode())]
