"""The seeds a judge draws values from: secret ones of its own, or those everybody knows (scoring.md 1.1)."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError

SEEDS_FILE = Path(__file__).parent / "hidden_tests" / "secret_seeds.json"


@dataclass(frozen=True)
class GradingSeeds:
    """Seeds of /score, /submit and the re-verification; public ones never credit anything."""

    first: int
    second: int
    third: int
    public: bool = False


DEVELOPMENT_SEEDS = GradingSeeds(first=101, second=202, third=303, public=True)
"""Known to everybody: for trying things out. A recording judge refuses them (503 public_seeds)."""


def new_seeds(path: Path) -> None:
    """Draw secret seeds and write them to ``path``, readable by their owner alone."""
    drawn = fresh_seeds()
    body = {"first": drawn.first, "second": drawn.second, "third": drawn.third}
    paths.write_atomic(path, json.dumps(body), mode=0o600)


def fresh_seeds() -> GradingSeeds:
    """Secret seeds that nobody keeps."""
    return GradingSeeds(secrets.randbits(63), secrets.randbits(63), secrets.randbits(63))


def load_seeds(path: Path | None = None) -> GradingSeeds:
    """Secret seeds of ``path`` (default: the judge's own file), else the development seeds."""
    chosen = path or SEEDS_FILE
    if not chosen.exists():
        if path is not None:
            raise UserError(f"no seeds file at {path}", "make one with: hpcagent-bench seeds new FILE")
        return DEVELOPMENT_SEEDS
    try:
        raw = json.loads(chosen.read_text())
        return GradingSeeds(int(raw["first"]), int(raw["second"]), int(raw["third"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{chosen}: not a seeds file ({error})", "make one with: hpcagent-bench seeds new FILE"
        ) from error
