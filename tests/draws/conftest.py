"""Fixtures of the draw and comparison tests: a cache of their own, and small kernels made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpcagent_bench.corpus import spec
from hpcagent_bench.corpus.spec import Kernel

MANIFEST = """\
name: Made Up
level: 1
parameters:
  S: {{N: 96, M: 5}}
  M: {{N: 1000, M: 6}}
  L: {{N: 2000, M: 7}}
  XL: {{N: 4000, M: 8}}
init:
  arrays:
{arrays}
output_args: [{output}]
"""


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPCAGENT_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def make_kernel(tmp_path: Path) -> Callable[..., Kernel]:
    """``make_kernel(x="(N,)", out="{shape: N, dtype: int32}")``: the last array is the output."""

    def make(**arrays: str) -> Kernel:
        folder = tmp_path / "loop_level_reasoning" / "made_up"
        folder.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(f"    {name}: {text}" for name, text in arrays.items())
        (folder / "made_up.yaml").write_text(MANIFEST.format(arrays=lines, output=list(arrays)[-1]))
        (folder / "made_up_numpy.py").write_text(f"def made_up({', '.join(arrays)}, N, M):\n    pass\n")
        return spec.load("made_up", root=tmp_path)

    return make
