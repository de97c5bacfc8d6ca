"""Several judges on one host: each at a port of its own, each serving its own workers alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from judge_rig import Judge, file_token

KERNEL = "tsvc_2_vtvtv"
JUDGES = 4


def test_judges_started_at_once_never_share_a_port_or_a_worker(tmp_path: Path) -> None:
    folders = [tmp_path / f"job-{n}" for n in range(JUDGES)]
    for n, folder in enumerate(folders):
        file_token(folder, f"token-{n}", KERNEL, "multi")
    starting = ThreadPoolExecutor(JUDGES)  # a judge ends with the thread that started it
    judges = list(starting.map(Judge, folders))
    try:
        assert len({judge.url for judge in judges}) == JUDGES
        for n, judge in enumerate(judges):
            assert judge.post("/score", f"token-{(n + 1) % JUDGES}", KERNEL, "x").status_code == 403
            assert judge.post("/score", f"token-{n}", KERNEL, "x").json()["status"] == "build_error"
            assert httpx.get(f"{judge.url}/health", timeout=30).json()["status"] == "ok"
    finally:
        for judge in judges:
            judge.end()
        starting.shutdown()
