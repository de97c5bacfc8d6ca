"""A kernel made on the spot, from manifest keys and a reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel

PLAIN: dict[str, Any] = {
    "name": "Probe",
    "level": 1,
    "parameters": {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}, "XL": {"N": 64}},
    "init": {"arrays": {"x": "(N,)", "out": "(N,)"}},
    "output_args": ["out"],
}


@pytest.fixture
def write_kernel(tmp_path: Path) -> Callable[..., Kernel]:
    """``write_kernel({key: value, ...})``: PLAIN with these keys; sizes and arrays become parameters."""

    def write(
        change: dict[str, Any] | None = None,
        *,
        initializer: str | None = None,
        track: str = "loop_level_reasoning",
        files: tuple[str, ...] = (),
    ) -> Kernel:
        manifest = {**PLAIN, **(change or {})}
        folder = tmp_path / track / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "probe.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
        sizes = manifest.get("parameters") or manifest["dimensions"]
        names = [*manifest["init"]["arrays"], *sizes["XL"]]
        (folder / "probe_numpy.py").write_text(f"def probe({', '.join(names)}):\n    pass\n")
        if initializer is not None:
            (folder / "probe.py").write_text(initializer)
        for name in files:
            (folder / name).write_text("")
        return spec.load("probe", tmp_path)

    return write
