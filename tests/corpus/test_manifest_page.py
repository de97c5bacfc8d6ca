"""docs/manifest.md names every key a manifest may have, and what it shows loads."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import yaml

from hpcagent_bench import paths
from hpcagent_bench.corpus import declarations, manifest
from hpcagent_bench.corpus.spec import Kernel
from hpcagent_bench.support import distributions

PAGE = (paths.project_root() / "docs" / "manifest.md").read_text(encoding="utf-8")
TRACK_NOTES = {"loop_level_reasoning", "scientific_computing", "machine_learning"}


def test_every_key_is_described() -> None:
    fields = manifest.Manifest.model_fields.items()
    keys = {field.alias or name for name, field in fields} - TRACK_NOTES - {manifest.FUZZED}
    keys |= set(manifest.SPARSE) | {"<track>.source"}
    first_cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    described = {name.split(".")[0] for name in re.findall(r"`([^`]+)`", first_cells)}
    assert keys - {"init", "fuzz", "<track>.source"} <= described
    inner = {f"init.{field.alias or name}" for name, field in declarations.Init.model_fields.items()}
    assert {key for key in inner if f"`{key}" not in PAGE} == set()


@pytest.mark.parametrize(
    "word",
    [
        *declarations.FLOAT_DISTRIBUTIONS,
        *declarations.INTEGER_DISTRIBUTIONS,
        *declarations.DOMAINS,
        *distributions.STRUCTURAL,
    ],
)
def test_every_distribution_and_domain_is_described(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_the_initializer_it_shows_loads_and_draws(write_kernel: Callable[..., Kernel]) -> None:
    block, code = re.findall(r"```(?:yaml|python)\n(.*?)```", PAGE, re.DOTALL)
    arrays = {"A": "(N, N)", "order": {"shape": "(N,)", "dtype": "int32"}, "out": "(N,)"}
    init = {**yaml.safe_load(block)["init"], "arrays": arrays}
    kernel = write_kernel({"init": init}, initializer=f"import numpy as np\n\n\n{code}")
    assert kernel.manifest.init.made_by_function == ("A", "order")
