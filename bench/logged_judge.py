"""A judge that also writes one line per build, call and grade: the irreducible work, and where time went."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from experiments import compose
from hpcagent_bench import config
from hpcagent_bench.cluster import serve
from hpcagent_bench.harness import sandbox, scoring
from hpcagent_bench.harness.native_call import Child


def log_work(path: Path) -> None:
    """Wrap the places where irreducible work is done, and the one where a grade ends."""
    handle = path.open("a", buffering=1)
    guard = threading.Lock()
    call, build, score = Child.call, sandbox.build, scoring.score

    def note(what: str, **facts: Any) -> None:
        with guard:
            handle.write(json.dumps({"what": what, **facts}) + "\n")

    def logged_call(self: Child, *args: Any, **kwargs: Any) -> Any:
        outcome = call(self, *args, **kwargs)
        note("call", ns=outcome.inside_ns)
        return outcome

    def logged_build(*args: Any, **kwargs: Any) -> Any:
        built = build(*args, **kwargs)
        note("build", s=built.seconds)
        return built

    def logged_score(*args: Any, **kwargs: Any) -> Any:
        verdict = score(*args, **kwargs)
        note("grade", phases=verdict.phases)
        return verdict

    Child.call = logged_call  # type: ignore[method-assign]
    sandbox.build = logged_build
    scoring.score = logged_score


def settings(sizes: str, denominator: str) -> tuple[config.Judge, config.Sizes]:
    """The default judge; ``sizes`` is a rung by name or in bytes."""
    judge, size = compose.judge_and_sizes(None, "default", "tiny" if sizes.isdigit() else sizes)
    judge.measurement.node_check = "off"  # one grade is timed here, not the machine
    if sizes.isdigit():
        size = config.Sizes("bench", int(sizes))
    if denominator:
        judge.measurement.denominator.loop_level_reasoning = denominator
        judge.measurement.denominator.scientific_computing = denominator
    return judge, size


def main() -> None:
    """``logged_judge RUN_DIR SEEDS SIZES LOG DENOMINATOR``: serve until terminated."""
    folder, seeds, sizes, log, denominator = sys.argv[1:6]
    log_work(Path(log))
    options = serve.ServeOptions(Path(folder), seeds=Path(seeds), record=True, with_parent=True)
    serve.serve(options, *settings(sizes, denominator))


if __name__ == "__main__":
    main()
