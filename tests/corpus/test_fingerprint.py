"""The task fingerprint follows the task: reference, arguments, configurations; not its sizes or comments."""

from __future__ import annotations

import pytest
import yaml

from hpcagent_bench.corpus import spec

SOURCE = '''"""Copies."""


def probe(x, out, N):
    """Copy x."""
    for i in range(N):  # every element
        out[i] = x[i]
'''
MANIFEST = {
    "name": "Probe",
    "level": 1,
    "parameters": {"S": {"N": 8}, "M": {"N": 16}, "L": {"N": 32}, "XL": {"N": 64}},
    "init": {"arrays": {"x": "(N,)", "out": "(N,)"}},
    "output_args": ["out"],
}


@pytest.fixture
def fingerprint(tmp_path):
    def compute(source=SOURCE, **changes):
        folder = tmp_path / "loop_level_reasoning" / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "probe.yaml").write_text(yaml.safe_dump({**MANIFEST, **changes}))
        (folder / "probe_numpy.py").write_text(source)
        return spec.task_fingerprint(spec.load("probe", tmp_path))

    return compute


def test_unchanged_by_sizes_docstrings_comments_and_layout(fingerprint):
    first = fingerprint()
    assert len(first) == 64
    sizes = {"S": {"N": 9}, "M": {"N": 99}, "L": {"N": 300}, "XL": {"N": 999}}
    assert fingerprint(parameters=sizes) == first
    assert fingerprint(name="Other Title", level=2) == first
    assert fingerprint(SOURCE.replace("Copies.", "Other").replace("Copy x.", "More")) == first
    bare = "def probe(x,out,N):\n  for i in range(N): out[i]=(x[i])\n"
    assert fingerprint(bare) == first


def test_changed_by_code_arguments_and_configurations(fingerprint):
    arrays = MANIFEST["init"]["arrays"]
    found = [
        fingerprint(),
        fingerprint(SOURCE.replace("out[i] = x[i]", "out[i] = x[i] + 0.0")),
        fingerprint(SOURCE.replace("(x, out, N)", "(out, x, N)")),
        fingerprint(init={"arrays": {**arrays, "x": {"shape": "(N,)", "domain": "positive"}}}),
        fingerprint(init={"arrays": {**arrays, "x": "(N + 1,)"}}),
        fingerprint(init={"arrays": arrays, "scalars": {"s": 1}}),
        fingerprint(config={"K": {"domain": [1, 2]}}),
        fingerprint(output_args=["out", "x"]),
    ]
    assert len(set(found)) == len(found)
