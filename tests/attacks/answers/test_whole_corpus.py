"""Zeros, the inputs themselves, what was there before and the mean pass for no kernel of the corpus.

The gate of the corpus refuses a kernel for which one of them would; here that it asks, and that the judge's
comparison answers.
"""

from __future__ import annotations

import numpy as np
import pytest

from hpcagent_bench.corpus import fuzz, precision, spec
from hpcagent_bench.corpus_check import rejects
from hpcagent_bench.harness.context import reference_call

KERNELS = sorted(spec.discover())
SEEDS = (11, 12)


def test_gate_of_the_corpus_tries_every_worthless_answer() -> None:
    worthless = {fixture.label for fixture in rejects.SIMPLE if fixture.worthless}
    assert worthless >= {"zeros", "untouched", "mean"}


@pytest.mark.parametrize("name", KERNELS)
def test_worthless_answers_do_not_pass(name: str) -> None:
    """Each at preset S on two draws, by the comparison and bands of a grade; the right answer does pass."""
    kernel = spec.load(name)
    params = {**kernel.configs[0], **kernel.presets["S"]}
    caught: dict[str, bool] = {}
    for seed in SEEDS:
        drawn = fuzz.drawn(kernel, params, value_seed=seed, structural_seed=seed)
        answers = {array: values.copy() for array, values in drawn.items()}
        reference_call(kernel)(answers)
        assert passes(kernel, params, {output: answers[output].copy() for output in kernel.outputs}, answers)
        for label, outputs in worthless(kernel, drawn, answers).items():
            caught[label] = caught.get(label, False) or not passes(kernel, params, outputs, answers)
    assert [label for label, stopped in caught.items() if not stopped] == []


def passes(
    kernel: spec.Kernel,
    params: dict[str, int | float],
    outputs: dict[str, np.ndarray],
    answers: dict[str, np.ndarray],
) -> bool:
    """Whether the judge's comparison takes these outputs for right."""
    return all(
        precision.compare(
            outputs[output],
            answers[output],
            precision.tolerance(kernel, output, params, "float64", None),
            threads=1,
            name=output,
        ).ok
        for output in kernel.outputs
    )


def worthless(
    kernel: spec.Kernel, drawn: dict[str, np.ndarray], answers: dict[str, np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """The outputs that each kind of worthless submission would hand in."""
    found = {
        "zeros": {output: np.zeros_like(answers[output]) for output in kernel.outputs},
        "untouched": {output: drawn[output] for output in kernel.outputs},
    }
    if any(answers[output].size > 1 for output in kernel.outputs):
        found["mean"] = {
            output: np.full_like(answers[output], answers[output].mean()) for output in kernel.outputs
        }
    for name, values in drawn.items():
        copies = {
            output: values
            if values.shape == answers[output].shape and values.dtype == answers[output].dtype
            else drawn[output]
            for output in kernel.outputs
        }
        found[f"input {name}"] = copies
    return found
