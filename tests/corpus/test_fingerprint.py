"""The task fingerprint follows the task: code, arguments, configurations, symbol; not sizes or comments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench.corpus import spec

SOURCE = '''"""Copies."""

import numpy as np


def half(v):
    """Half of v."""
    return 0.5 * v


def probe(x, out, N):
    """Copy x."""
    for i in range(N):  # every element
        out[i] = half(x[i])
'''
INITIALIZER = '''"""Makes x."""


def initialize(N, datatype, rng):
    """Uniform numbers."""
    return rng.random(N).astype(datatype)  # of the run's type
'''
ARRAYS: dict[str, Any] = {"x": "(N,)", "out": "(N,)"}
MANIFEST: dict[str, Any] = {
    "name": "Probe",
    "level": 1,
    "parameters": {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}, "XL": {"N": 64}},
    "init": {"arrays": ARRAYS},
    "output_args": ["out"],
}
CUSTOM = {"init": {"arrays": ARRAYS, "func_name": "initialize", "input_args": ["N"], "output_args": ["x"]}}
Fingerprint = Callable[..., str]


@pytest.fixture
def fingerprint(tmp_path: Path) -> Fingerprint:
    def compute(
        source: str = SOURCE, initializer: str = INITIALIZER, kernel: str = "probe", **changes: Any
    ) -> str:
        folder = tmp_path / "loop_level_reasoning" / kernel
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{kernel}.yaml").write_text(yaml.safe_dump({**MANIFEST, **changes}))
        (folder / f"{kernel}_numpy.py").write_text(source)
        (folder / f"{kernel}.py").write_text(initializer)
        return spec.task_fingerprint(spec.load(kernel, tmp_path))

    return compute


def test_unchanged_by_sizes_titles_docstrings_comments_and_layout(fingerprint: Fingerprint) -> None:
    first = fingerprint()
    assert len(first) == 64
    sizes = {"S": {"N": 9}, "M": {"N": 99}, "L": {"N": 300}, "XL": {"N": 999}}
    bare = (
        "import numpy as np\ndef half(v): return (0.5*v)\n\n\n"
        "def probe(x,out,N):\n  for i in range(N): out[i]=half(x[i])\n"
    )
    same = [
        fingerprint(parameters=sizes),
        fingerprint(parameters={**sizes, "fuzzed": {"N": [8, 999]}}),
        fingerprint(name="Other Title", level=2, timeout_s=3, experiment_tags=["t"]),
        fingerprint(conditioning_atol=1e-9),  # a tolerance is how it is judged, not what is asked
        fingerprint(SOURCE.replace("Copies.", "Other").replace("Copy x.", "More").replace("Half of v.", "?")),
        fingerprint(bare),
        fingerprint(initializer="an unused file(("),
    ]
    assert set(same) == {first}


def test_changed_by_code_arguments_configurations_types_and_symbol(fingerprint: Fingerprint) -> None:
    found = [
        fingerprint(),
        fingerprint(SOURCE.replace("half(x[i])", "half(x[i]) + 0.0")),
        fingerprint(SOURCE.replace("0.5 * v", "0.25 * v")),  # a helper function
        fingerprint(SOURCE.replace("(x, out, N)", "(out, x, N)")),
        fingerprint(init={"arrays": {**ARRAYS, "x": {"shape": "(N,)", "domain": "positive"}}}),
        fingerprint(init={"arrays": {**ARRAYS, "x": {"shape": "(N,)", "dtype": "float32"}}}),
        fingerprint(init={"arrays": {**ARRAYS, "x": {"shape": "(N,)", "dist": "normal"}}}),
        fingerprint(init={"arrays": {**ARRAYS, "x": "(N + 1,)"}}),
        fingerprint(init={"arrays": ARRAYS, "scalars": {"s": 1}}),
        fingerprint(init={"arrays": ARRAYS, "scalars": {"s": 2}}),
        fingerprint(init={"arrays": ARRAYS, "scalars": {"s": {"value": 1, "dtype": "float64"}}}),
        fingerprint(config={"K": {"domain": [1, 2]}}),
        fingerprint(config={"K": {"domain": [1, 3]}}),
        fingerprint(output_args=["out", "x"]),
        fingerprint(kernel="probe_2", func_name="probe"),  # the entry symbol alone
    ]
    assert len(set(found)) == len(found)


def test_the_initializer_is_part_of_the_task(fingerprint: Fingerprint) -> None:
    first = fingerprint(**CUSTOM)
    documented = (
        INITIALIZER.replace("Makes x.", "...").replace("Uniform numbers.", "U.").replace("# of", "# in")
    )
    assert fingerprint(initializer=documented, **CUSTOM) == first
    changed = [
        first,
        fingerprint(),
        fingerprint(initializer=INITIALIZER.replace("rng.random(N)", "2 * rng.random(N)"), **CUSTOM),
        fingerprint(initializer=INITIALIZER + "\n\ndef other():\n    pass\n", **CUSTOM),
        fingerprint(**{"init": {**CUSTOM["init"], "output_args": ["out"]}}),
    ]
    assert len(set(changed)) == len(changed)


def test_a_recorded_fingerprint_still_names_its_task(fingerprint: Fingerprint) -> None:
    """Grades keep fingerprints, and a changed one owes a fresh run: the rule may not drift."""
    assert fingerprint() == "95238d4e5b97104286e631120feace64d6043fbdb8f357e80b3ebd7a8932a9bb"
