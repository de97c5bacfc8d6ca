"""The control: submits the reference source as it is, so its score must come out near 1."""

from __future__ import annotations

import sys

from hpcagent_agent.harnesses import Workspace
from hpcagent_agent.tools.client import JudgeClient


def main() -> int:
    """Exit code 0: graded; 1: not. A fault that may pass leaves no closing record, so it is tried again."""
    workspace = Workspace.from_env()
    path = workspace.reference()
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        workspace.end("error", f"{path.name}: {error.strerror}")
        print(f"{path}: {error.strerror}", file=sys.stderr)
        return 1
    with JudgeClient(optimizer="reference") as judge:
        answer = judge.submit(source)
    if answer["ok"] and not answer.get("judge_fault"):
        workspace.end("finished", f"correct={answer.get('correct')}")
        print(f"submitted {path.name}: correct={answer.get('correct')}")
        return 0
    fault = answer.get("error") or "the judge reported a fault of its own"
    print(f"submit {path.name}: {fault}", file=sys.stderr)
    if 400 <= answer.get("status", 0) < 500:
        workspace.end("error", str(fault))
    return 1


if __name__ == "__main__":
    sys.exit(main())
