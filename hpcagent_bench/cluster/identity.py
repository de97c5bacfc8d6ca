"""Who is calling: a worker's secret token names its episode, setup and kernel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hpcagent_bench import results_db


class UnknownToken(Exception):
    """The token belongs to no worker of this job."""


@dataclass(frozen=True)
class Caller:
    """The worker behind a request. ``kernel`` None: a person trying things out, filed under ``adhoc``."""

    setup: results_db.Setup
    episode: results_db.Episode
    kernel: str | None
    language: str | None
    submission_mode: str

    @property
    def limited(self) -> bool:
        """Whether the episode has one submission only (scoring.md 3.3)."""
        return self.submission_mode in ("single", "blind")


ADHOC = Caller(
    results_db.Setup(results_db.ADHOC, study=None, harness=""),
    results_db.Episode(results_db.ADHOC, None, results_db.ADHOC),
    None,
    None,
    "multi",
)


def token_file(folder: Path, token: str) -> Path:
    """Where the launcher filed a token: by its sha256, so that listing the folder reveals none."""
    return folder / hashlib.sha256(token.encode()).hexdigest()


def resolve(folder: Path | None, authorization: str | None) -> Caller:
    """The caller of a request; a judge without a token folder takes everybody as ``adhoc``.

    Raises:
        UnknownToken: there is a folder, and the header carries no token filed there.
    """
    if folder is None:
        return ADHOC
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise UnknownToken("no worker token: send 'Authorization: Bearer <token>'")
    path = token_file(folder, token.strip())
    if not path.is_file():
        raise UnknownToken("this worker token is not one of this job's")
    return _read(path)


def _read(path: Path) -> Caller:
    raw = json.loads(path.read_text())
    setup = results_db.Setup(**_known(results_db.Setup, raw["setup"]))
    episode = results_db.Episode(**{"setup": setup.setup, **_known(results_db.Episode, raw["episode"])})
    return Caller(setup, episode, episode.kernel, raw.get("language"), raw.get("submission_mode", "single"))


def _known(row: type[Any], raw: dict[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(row)}
    return {k: v for k, v in raw.items() if k in names}
