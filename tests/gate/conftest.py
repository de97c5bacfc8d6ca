"""Kernels planted in a corpus of their own, and the gate run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench.corpus_check import gate
from hpcagent_bench.corpus_check.findings import Report

Plant = Callable[..., Path]
SIZES = {"S": {"N": 64}, "M": {"N": 4096}, "L": {"N": 5793}, "XL": {"N": 8192}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The planted corpus."""
    return tmp_path / "corpus"


@pytest.fixture
def plant(root: Path) -> Plant:
    """Write a kernel; keyword arguments are manifest keys, ``initialize`` the text of its own draw."""

    def write(
        source: str,
        arrays: Mapping[str, Any],
        outputs: list[str],
        name: str = "probe",
        initialize: str = "",
        **keys: Any,
    ) -> Path:
        folder = root / "loop_level_reasoning" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}_numpy.py").write_text(source)
        init: dict[str, Any] = {"arrays": dict(arrays)}
        if initialize:
            (folder / f"{name}.py").write_text(initialize)
            init |= {"func_name": "initialize", "input_args": ["N"]}
        manifest = {"name": name.title(), "level": 1, "parameters": SIZES, "init": init, **keys}
        (folder / f"{name}.yaml").write_text(
            yaml.safe_dump({**manifest, "output_args": outputs}, sort_keys=False)
        )
        return folder

    return write


@pytest.fixture
def only_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """One language will do for what is wrong whatever the language."""
    monkeypatch.setattr(gate, "LANGUAGES", ("c",))


@pytest.fixture
def check(root: Path, only_c: None) -> Callable[..., Report]:
    """The gate on a planted kernel, in this process."""

    def run(name: str = "probe", fixtures: Path | None = None) -> Report:
        return gate.check_kernel(name, root, fixtures=fixtures, use_cache=False)

    return run
