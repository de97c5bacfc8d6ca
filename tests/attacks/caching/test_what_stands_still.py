"""What stands still over the draws of an input, and so could be kept from its warm-up.

Index arrays, masks and other integers stay as they are (scoring.md 1.3), so an answer that follows from them
alone would be right in every timed call. No kernel has such an answer; two have an output of that kind.
"""

from __future__ import annotations

import pytest
from attack_rig import Rig, refused, version

from hpcagent_bench.corpus import fuzz, precision, spec
from hpcagent_bench.harness.context import reference_call

POPCOUNT = "popcount_parity_sign"
KNOWN = {("bfs_potential_levels", "level"), (POPCOUNT, "ones")}


def standing(name: str) -> list[str]:
    """The outputs of a kernel at preset S that are the same on three draws of one structural seed."""
    kernel = spec.load(name)
    params = {**kernel.configs[0], **kernel.presets["S"]}
    answers = []
    for seed in (1, 2, 3):
        arrays = fuzz.drawn(kernel, params, value_seed=seed, structural_seed=7)
        reference_call(kernel)(arrays)
        answers.append(arrays)
    bands = {
        output: precision.tolerance(kernel, output, params, "float64", None) for output in kernel.outputs
    }
    return [
        output
        for output in kernel.outputs
        if all(
            precision.compare(other[output], answers[0][output], bands[output], threads=1, name=output).ok
            for other in answers[1:]
        )
    ]


@pytest.mark.parametrize("name", sorted(spec.discover()))
def test_no_whole_answer_stands_still(name: str) -> None:
    found = standing(name)
    assert set(found) < set(spec.load(name).outputs)
    assert {(name, output) for output in found} <= KNOWN


def test_what_stands_still_kept_by_size_alone_is_overfit(judge: Rig) -> None:
    """The held-out cases bring other integers at the same sizes."""
    body = """static int64_t size, kept; HONEST;
    if (size == LEN_1D) ones[0] = kept; else { size = LEN_1D; kept = ones[0]; }"""
    verdict = judge.attack(version(body, kernel=POPCOUNT), kernel=POPCOUNT)
    refused(verdict, "overfit", "size_class_sweep")


def test_twin_that_keeps_it_by_the_keys_is_accepted(judge: Rig) -> None:
    """It is right; what its first calls take is timed as well (the cold ratio)."""
    body = """static int64_t size, kept; static int64_t *seen; size_t bytes = LEN_1D * sizeof *key; HONEST;
    if (size == LEN_1D && !memcmp(seen, key, bytes)) { ones[0] = kept; return; }
    seen = realloc(seen, bytes); memcpy(seen, key, bytes); size = LEN_1D; kept = ones[0];"""
    judge.accepts(version(body, kernel=POPCOUNT), kernel=POPCOUNT)
