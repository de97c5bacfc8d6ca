"""The command line and the environment an agent starts with."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from hpcagent_agent.driver import attempts, inside
from hpcagent_agent.driver.settings import Problem, Settings

SEALED_WORKSPACE = "/workspace"
SEALED_SOCKET = "/run/judge.sock"
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Places:
    """Where an attempt's things lie on the host; the seal's placeholders stand for them."""

    workspace: Path
    agent_folder: Path
    shared: Path
    task: Path
    socket: Path

    def fill(self, item: str) -> str:
        """``item`` with its placeholders replaced."""
        names = {
            "{workdir}": self.workspace,
            "{agent_folder}": self.agent_folder,
            "{shared}": self.shared,
            "{task}": self.task,
            "{socket}": self.socket,
        }
        for name, path in names.items():
            item = item.replace(name, str(path))
        return item


def command(
    settings: Settings, problem: Problem, worker: int, places: Places, deadline_ms: int | None
) -> list[str]:
    """The seal's prefix, the stub that opens the way to the judge, then the harness."""
    sealed = settings.seal.enabled
    workspace = SEALED_WORKSPACE if sealed else str(places.workspace)
    stub = Path(inside.__file__).resolve()
    code_root = stub.parents[2]
    prefix: list[str] = []
    if sealed:
        prefix = [places.fill(item) for item in problem.seal_argv or settings.seal.argv]
        if prefix[-1] == "--":
            prefix.pop()
        prefix += ["--ro-bind", str(code_root), str(code_root)]
    env = agent_env(settings, problem, workspace, code_root, deadline_ms)
    return [
        *prefix,
        *(sys.executable, "-I", str(stub)),
        *("--socket", SEALED_SOCKET if sealed else str(places.socket)),
        *("--workdir", workspace),
        *("--cpus", ",".join(map(str, settings.worker_cpus(worker)))),
        *(part for key, value in env.items() for part in ("--env", f"{key}={value}")),
        "--",
        *settings.harness.command(),
    ]


def agent_env(
    settings: Settings, problem: Problem, workspace: str, code_root: Path, deadline_ms: int | None
) -> dict[str, str]:
    """The environment of an agent. JUDGE_URL is the stub's to set; the token is never in it."""
    env = {
        "PYTHONPATH": str(code_root),
        "HOME": f"{workspace}/.home",
        "JUDGE_RANK": str(settings.judge_rank),
        "JUDGE_TIMEOUT_SECONDS": f"{settings.judge_timeout_s:g}",
        "KERNEL": problem.kernel_name,
        "LANGUAGE": problem.language,
        "HPCAGENT_BENCH_EPISODE_ID": problem.episode_id,
        "HPCAGENT_BENCH_USAGE_PATH": f"{workspace}/{attempts.USAGE}",
        "HPCAGENT_BENCH_OPTIMIZER": settings.harness.name,
        "HPCAGENT_BENCH_HARNESS_OPTIONS": json.dumps(settings.harness.options),
        "AGENT_WORKDIR": workspace,
        "AGENT_SUBMISSION_MARKER": f"{workspace}/{attempts.MARKER}",
        "AGENT_SUBMISSION_MODE": settings.submission_mode,
        **settings.harness.env,
    }
    if deadline_ms is not None:
        env["AGENT_DEADLINE_MS"] = str(deadline_ms)
    return env


def clean_env() -> dict[str, str]:
    """What an agent's first process inherits: nothing that could hold a key or the job's identity."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}
