"""A judge that also writes one line per build and call: the irreducible work of what it grades."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from experiments import compose
from hpcagent_bench.cluster import serve
from hpcagent_bench.harness import sandbox
from hpcagent_bench.harness.native_call import Child


def log_work(path: Path) -> None:
    """Wrap the two places where irreducible work is done."""
    handle = path.open("a", buffering=1)
    call, build = Child.call, sandbox.build

    def logged_call(self: Child, *args: Any, **kwargs: Any) -> Any:
        outcome = call(self, *args, **kwargs)
        handle.write(json.dumps({"what": "call", "ns": outcome.inside_ns}) + "\n")
        return outcome

    def logged_build(*args: Any, **kwargs: Any) -> Any:
        built = build(*args, **kwargs)
        handle.write(json.dumps({"what": "build", "s": built.seconds}) + "\n")
        return built

    Child.call = logged_call  # type: ignore[method-assign]
    sandbox.build = logged_build


def main() -> None:
    """``logged_judge RUN_DIR SEEDS SIZES LOG``: serve until terminated."""
    folder, seeds, sizes, log = sys.argv[1:5]
    log_work(Path(log))
    judge, size = compose.judge_and_sizes(None, "default", sizes)
    serve.serve(
        serve.ServeOptions(Path(folder), seeds=Path(seeds), record=True, with_parent=True), judge, size
    )


if __name__ == "__main__":
    main()
