"""A real judge process for tests: started on a job folder, spoken to over HTTP, ended by id."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import httpx

from hpcagent_bench import translators
from hpcagent_bench.cluster import identity
from hpcagent_bench.corpus import spec


def file_token(
    run_dir: Path,
    token: str,
    kernel: str,
    mode: str = "single",
    worker: int = 0,
    *,
    language: str = "c",
    packet: str = "",
) -> None:
    """File a worker's token the way a job does."""
    folder = run_dir / "fused-tokens"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"t-{language}{'-' + packet if packet else ''}-reference"
    setup = {"setup": name, "study": "t", "language": language, "packet": packet, "harness": "reference"}
    body = {
        "setup": setup,
        "episode": {"job": 7, "label": f"{name}.n0.p{worker}.w{worker}", "kernel": kernel},
        "language": language,
        "submission_mode": mode,
    }
    identity.token_file(folder, token).write_text(json.dumps(body))


class Judge:
    """One judge process; ``url`` is set once it serves."""

    def __init__(
        self,
        run_dir: Path,
        *,
        denominator: str = "c",
        settings: Mapping[str, object] | None = None,
        seeds: Mapping[str, object] | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        """``settings`` are further keys of group ``judge`` by dotted name; ``log`` gets what it prints."""
        self.run_dir = run_dir
        run_dir.mkdir(parents=True, exist_ok=True)
        seeds_file = run_dir / "seeds.json"
        seeds_file.write_text(json.dumps(seeds or {"first": 1, "second": 2, "third": 3}))
        chosen = {
            "measurement.denominator.loop_level_reasoning": denominator,
            "measurement.node_check": "off",
            **(settings or {}),
        }
        code = (
            "import sys; from pathlib import Path; from hpcagent_bench import config; "
            "from hpcagent_bench.cluster import serve; j = config.Judge(); "
            + "".join(f"j.{key} = {value!r}; " for key, value in chosen.items())
            + "serve.serve(serve.ServeOptions(Path(sys.argv[1]), seeds=Path(sys.argv[2]), record=True, "
            "tokens=Path(sys.argv[1]) / 'fused-tokens', with_parent=True), j, config.Sizes('tiny', 2**18))"
        )
        argv = [sys.executable, "-c", code, str(run_dir), str(seeds_file)]
        self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        service = run_dir / "judge" / "rank-0" / "service.json"
        service.unlink(missing_ok=True)
        deadline = time.monotonic() + 60
        while not service.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the judge did not start")
            time.sleep(0.02)
        self.url = json.loads(service.read_text())["url"]

    @property
    def shard(self) -> Path:
        return self.run_dir / "judge" / "rank-0" / "hpcagent_bench0.db"

    def post(
        self, route: str, token: str, kernel: str, source: str | None = None, **more: Any
    ) -> httpx.Response:
        """Score or submit ``source`` (default: the emitted C reference) as the worker with ``token``."""
        text = source if source is not None else translators.emit(spec.load(kernel), "c")
        body = {"kernel": kernel, "language": "c", "rank": 0, "source": text, **more}
        header = {"Authorization": f"Bearer {token}"}
        return httpx.post(self.url + route, json=body, headers=header, timeout=300)

    def end(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=30)
