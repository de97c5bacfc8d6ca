"""The control: submits the reference source as it is, so its score must come out near 1."""

from __future__ import annotations

import sys

from hpcagent_agent.harnesses import Workspace
from hpcagent_agent.tools.client import JudgeClient


def main() -> int:
    """Exit code 0: graded; 1: not."""
    workspace = Workspace.from_env()
    source = workspace.read_reference()
    if source is None:
        return 1
    with JudgeClient(optimizer="reference") as judge:
        return workspace.submit(judge, source)


if __name__ == "__main__":
    sys.exit(main())
