"""Reads the task's C reference, searches through /score, submits the best variant or the reference."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hpcagent_agent.driver.files import append_line
from hpcagent_agent.harnesses import Workspace
from hpcagent_agent.tools.client import JudgeClient

from .parse import Unparsable, parse
from .search import WORTHWHILE, Search, Trial
from .variants import Plan, Shapes, build

DEFAULT_BUDGET = 8
BLIND_PLAN = Plan(jam=4)
"""Where nothing may be scored: what is fastest on most loops, and legal on all it is applied to."""


def main() -> int:
    """Exit code 0: graded; 1: not."""
    workspace = Workspace.from_env()
    source = workspace.read_reference()
    if source is None:
        return 1
    with JudgeClient(optimizer="autotune") as judge:
        chosen, detail, turns = _choose(workspace, judge, source)
        return workspace.submit(judge, chosen, detail, turns)


def _choose(workspace: Workspace, judge: JudgeClient, source: str) -> tuple[str, str, int]:
    """What to submit, why, and how many grades it took to know."""
    if workspace.language != "c":
        return source, f"the reference as it is: {workspace.language} is not rewritten", 0
    try:
        symbol, shapes = task_of(workspace.task / "binding.json", source)
        if workspace.mode == "blind":
            text = build(source, symbol, shapes, BLIND_PLAN)
            return (text if compiles(text) else source), f"unscored: {BLIND_PLAN.label()}", 0
        search = _search(workspace, judge, source, symbol, shapes)
        best = search.run()
    except (Unparsable, OSError, KeyError, TypeError, ValueError) as error:
        return source, f"the reference as it is: {error}", 0
    turns = len(search.trials)
    if best is not None and best.gain > WORTHWHILE:
        return best.source, f"{best.plan.label()} ({best.gain:.2f} times faster in {turns} tries)", turns
    why = search.fault or "no variant is faster"
    return source, f"the reference as it is: {why}", turns


def _search(workspace: Workspace, judge: JudgeClient, source: str, symbol: str, shapes: Shapes) -> Search:
    options: dict[str, Any] = workspace.options
    tried = workspace.workdir / "autotune"
    tried.mkdir(exist_ok=True)

    def log(trial: Trial) -> None:
        number = len(search.trials)
        (tried / f"{number}.c").write_text(trial.source, encoding="utf-8")
        record = {"try": number, "plan": trial.plan.label(), "gain": round(trial.gain, 4)}
        record |= {key: trial.answer.get(key) for key in ("correct", "speedup", "native_ns", "detail")}
        append_line(workspace.workdir / "autotune.jsonl", record)
        print(f"try {number}: {trial.plan.label()}: {trial.gain:.2f}", flush=True)

    search = Search(
        source,
        symbol,
        shapes,
        score=lambda text: judge.score(text),
        budget=int(options.get("budget", DEFAULT_BUDGET)),
        threads=int(options.get("threads", len(os.sched_getaffinity(0)))),
        seconds_left=workspace.seconds_left,
        accepts=compiles,
        log=log,
    )
    return search


def task_of(binding: Path, source: str) -> tuple[str, dict[str, list[str]]]:
    """The symbol, and the shape of each pointer by its C name (the binding's order is the parameters' order).

    Raises OSError, ValueError or KeyError for a missing or malformed file, Unparsable for a foreign source.
    """
    data = json.loads(binding.read_text(encoding="utf-8"))
    symbol = str(data["symbol"])
    shapes = [list(arg.get("shape") or ()) for arg in data["args"] if arg["kind"] == "ptr"]
    names = [name for name in parse(source, symbol).pointers if name != "workspace"]
    if len(names) != len(shapes):
        raise ValueError(f"{binding.name} has {len(shapes)} pointers and the source {len(names)}")
    return symbol, dict(zip(names, shapes, strict=True))


def compiles(source: str) -> bool:
    """A quick look by a local gcc, so that no grade is spent on text that cannot build; True without one."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return True
    command = [gcc, "-fsyntax-only", "-fopenmp", "-march=native", "-x", "c", "-"]
    return subprocess.run(command, input=source.encode(), capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
