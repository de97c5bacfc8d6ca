"""Attacks on a judge over HTTP: one judge of a job, workers filed one by one, what it recorded."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cluster.judge_rig import Judge, file_token

KERNEL = "tsvc_2_vtvtv"
SIGNATURE = (
    "void tsvc_2_vtvtv_fp64(double *restrict a, const double *restrict b, const double *restrict c, "
    "const int64_t n, uint8_t *restrict workspace, const int64_t workspace_size)"
)
HONEST = "for (int64_t i = 0; i < n; i++) a[i] = a[i] * b[i] * c[i];"
CANARY = "canary-5f0c93d1"
"""In every planted string: in the seeds file, in references, in the database, in other workers' files."""
SEEDS = {"first": 4611686018427387847, "second": 3037000499976049692, "third": 2862933555777941757}
PLANTED = (CANARY, *(str(seed) for seed in SEEDS.values()))


def source(body: str = HONEST, before: str = "") -> str:
    """C source of the kernel with this body and these lines before it."""
    head = f"#define _GNU_SOURCE\n#include <stdint.h>\n#include <stdio.h>\n{before}\n"
    return f"{head}{SIGNATURE}\n{{\n{body}\n}}\n"


class World:
    """A judge with a cache of its own that graded nothing yet, and the workers of its job."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.log = run_dir / "judge.log"
        self.shared = run_dir / "shared"
        self.shared.mkdir(parents=True)
        self.cache = run_dir / "cache"
        self._numbers = itertools.count()
        (run_dir / "fused-tokens").mkdir()
        with self.log.open("wb") as log, pytest.MonkeyPatch.context() as environment:
            environment.setenv("HPCAGENT_BENCH_CACHE", str(self.cache))
            self.judge = Judge(
                run_dir, settings={"service.input_mode": "any"}, seeds={**SEEDS, "note": CANARY}, log=log
            )

    @property
    def url(self) -> str:
        return self.judge.url

    def worker(self, mode: str = "multi") -> str:
        """The token of one more worker."""
        number = next(self._numbers)
        token = f"{number:064x}"
        file_token(self.run_dir, token, KERNEL, mode, worker=number)
        return token

    def label(self, token: str) -> str:
        """The episode of a worker, as recorded."""
        number = int(token, 16)
        return f"t-c-reference.n0.p{number}.w{number}"

    def ask(self, route: str, token: str, *, timeout: float = 300, **body: Any) -> httpx.Response:
        """Post to a route as a worker; ``body`` over what every request carries."""
        return httpx.post(
            self.url + route,
            json={"kernel": KERNEL, "language": "c", "rank": 0, **body},
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
        )

    def rows(self, sql: str, *args: object) -> list[Any]:
        """What the judge's database answers."""
        with sqlite3.connect(f"file:{self.judge.shard}?mode=ro", uri=True) as conn:
            return conn.execute(sql, args).fetchall()

    def graded(self, token: str) -> list[Any]:
        """(kind, status, reason) of a worker's grades."""
        return self.rows(
            "SELECT g.kind, g.status, g.reason FROM grades g JOIN episodes e ON e.id = g.episode_id "
            "WHERE e.label = ? ORDER BY g.id",
            self.label(token),
        )

    def healthy(self) -> bool:
        """Whether the judge answers at once."""
        return httpx.get(self.url + "/health", timeout=20).status_code == 200

    def grades_an_honest_one(self) -> bool:
        """Whether the next honest preview is right."""
        return bool(self.ask("/score", self.worker(), source=source()).json()["correct"])

    def end(self) -> None:
        """End the judge."""
        if self.judge.process.poll() is None:
            os.kill(self.judge.process.pid, signal.SIGTERM)
        self.judge.process.wait(timeout=60)


def leaked(text: str | bytes) -> list[str]:
    """The planted strings in a text."""
    raw = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    return [planted for planted in PLANTED if planted.encode() in raw]
