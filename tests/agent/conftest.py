"""Fixtures of the agent's side: a scripted judge, a run tree, a seal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_rig import FakeJudge, Run

SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives")


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    judge = FakeJudge()
    yield judge
    judge.close()


@pytest.fixture
def run(tmp_path: Path, judge: FakeJudge) -> Run:
    return Run(tmp_path, judge)


@pytest.fixture
def seal_argv() -> list[str]:
    """A bubblewrap prefix of the shape the node job hands over."""
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
    argv += ["--tmpfs", "/tmp", "--setenv", "PATH", "/usr/bin:/bin"]
    for folder in map(Path, SYSTEM):
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        else:
            argv += ["--ro-bind-try", str(folder), str(folder)]
    for prefix in sorted({sys.base_prefix, sys.prefix} - {"/usr"}):
        argv += ["--ro-bind", prefix, prefix]
    return [*argv, "--bind", "{workdir}", "/workspace", "--ro-bind", "{socket}", "/run/judge.sock"]


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError("the condition never came true")

    return wait
