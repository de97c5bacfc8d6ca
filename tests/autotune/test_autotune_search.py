"""The search keeps the best correct variant, within its budget and its time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hpcagent_agent.harnesses.autotune.__main__ import task_of
from hpcagent_agent.harnesses.autotune.search import Search, gain
from hpcagent_agent.harnesses.autotune.variants import Plan

KERNEL = """
void k(double *restrict aa, const double *restrict bb, const int64_t N)
{
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 1; j < N; j++) {
            aa[j * N + i] = aa[(j - 1) * N + i] + bb[j * N + i];
        }
    }
}
"""
SHAPES = {"aa": ["N", "N"], "bb": ["N", "N"]}


def answer(own_ns: float, correct: bool = True) -> dict[str, Any]:
    return {"ok": True, "correct": correct, "cells": [{"baseline_ns": 100.0, "native_ns": own_ns}]}


def search(score: Callable[[str], dict[str, Any]], **settings: Any) -> Search:
    return Search(KERNEL, "k", SHAPES, score, **settings)


def jammed(source: str) -> int:
    """How many rows the widest loop of a source advances at once."""
    return max(source.count("j += 8") * 8, source.count("j += 4") * 4, 1)


def test_the_fastest_correct_variant_wins() -> None:
    walk = search(lambda source: answer(100.0 / jammed(source), correct=jammed(source) != 8))
    best = walk.run()
    assert best is not None
    assert (best.plan, best.gain) == (Plan(jam=4), 4.0)
    assert [trial.gain for trial in walk.trials][:3] == [1.0, 4.0, 0.0]
    assert len({trial.source for trial in walk.trials}) == len(walk.trials)


@pytest.mark.parametrize(("settings", "tries"), [({"budget": 2}, 2), ({"seconds_left": lambda: 1.0}, 0)])
def test_limits_are_kept(settings: dict[str, Any], tries: int) -> None:
    walk = search(lambda source: answer(50.0), **settings)
    walk.run()
    assert len(walk.trials) == tries


def test_a_judge_that_cannot_answer_ends_the_search() -> None:
    walk = search(lambda source: {"ok": False, "status": 403, "error": "scores are off"})
    assert walk.run() is None
    assert (walk.fault, walk.trials) == ("403: scores are off", [])


def test_text_that_does_not_compile_costs_no_grade() -> None:
    walk = search(lambda source: answer(50.0), accepts=lambda source: False)
    assert walk.run() is None
    assert walk.trials == []


def test_gain_is_the_geometric_mean_of_the_measured_ratios() -> None:
    cells = [{"baseline_ns": 800.0, "native_ns": 100.0}, {"baseline_ns": 200.0, "native_ns": 100.0}]
    assert gain({"correct": True, "speedup": 1.0, "cells": cells}) == pytest.approx(4.0)
    assert gain({"correct": False, "speedup": 9.0, "cells": cells}) == 0.0
    assert gain({"correct": True, "baseline_ns": 300.0, "native_ns": 100.0}) == pytest.approx(3.0)
    assert gain({"correct": True, "speedup": None}) == 0.0


def test_the_task_gives_shapes_by_the_names_of_the_source(tmp_path: Path) -> None:
    args = [
        {"name": "aa", "kind": "ptr", "shape": ["N", "N"]},
        {"name": "b", "kind": "ptr", "shape": ["N", "N"]},
        {"name": "N", "kind": "scalar"},
    ]
    path = tmp_path / "binding.json"
    path.write_text(json.dumps({"symbol": "k", "args": args}))
    assert task_of(path, KERNEL) == ("k", SHAPES)
    path.write_text(json.dumps({"symbol": "k", "args": args[:1]}))
    with pytest.raises(ValueError, match="1 pointers and the source 2"):
        task_of(path, KERNEL)
