"""For hostile builds: a short limit of the compiler, and files that no build may see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attack_rig
import pytest
from attack_api import CANARY


@pytest.fixture(scope="module")
def judge() -> Iterator[attack_rig.Rig]:
    """A judge that stops a compiler after ten seconds."""
    with attack_rig.rig() as made:
        made.context.settings.timeouts.compile_s = 10.0
        yield made


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of a judge, each with the planted string where a compiler that read it would quote it."""
    folder = tmp_path_factory.mktemp("judge")
    texts = {
        "seeds.json": json.dumps({"first": CANARY}),
        "reference.c": f"int {CANARY} = 1;\n",
        "hpcagent_bench0.db": f"SQLite format 3\0{CANARY}",
        "tokens.json": f"{CANARY}: secret",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}
