"""docs/scoring.md says what the code does: its settings, tables, example and names are read off the page."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench import paths, protocols
from hpcagent_bench.harness import anticheat, rep_variation, timing
from hpcagent_bench.support.distributions.hidden import HELD_OUT

PAGE = (Path(__file__).parents[2] / "docs" / "scoring.md").read_text()
SETTING = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+) = ([^`]+)`")


def _default(key: str) -> Any:
    """The shipped default of a judge setting."""
    found: Any = yaml.safe_load((paths.project_root() / "conf" / "judge" / "default.yaml").read_text())
    for part in key.split("."):
        found = found[part]
    return found


def _rows(after: str) -> list[list[str]]:
    """The cells of the first table behind a heading."""
    rows: list[list[str]] = []
    for line in PAGE.partition(after)[2].splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


@pytest.mark.parametrize(("key", "value"), sorted(set(SETTING.findall(PAGE))))
def test_a_setting_on_the_page_is_the_shipped_default(key: str, value: str) -> None:
    assert yaml.safe_load(value) == _default(key)


def test_the_page_names_enough_settings() -> None:
    assert len(set(SETTING.findall(PAGE))) >= 18


def test_the_protocol_table_is_the_registry() -> None:
    shared = {"an input": "input", "a run": "run"}
    table = {
        stamp.strip("`"): (role, int(inputs), int(runs), float(alpha), shared[process])
        for stamp, role, inputs, runs, alpha, process, _ in _rows("### 1.1")
    }
    assert table == {
        p.stamp: (p.role, p.inputs, p.runs, p.alpha, p.sampled) for p in protocols.REGISTRY.values()
    }


def test_the_gates_stand_in_the_order_of_the_page() -> None:
    named = [row[0] for row in _rows("### 1.2")]
    order = {
        "build": "build",
        "timed calls": "timed_calls",
        "held-out cases": "size_class_sweep",
        "independent re-verification": "independent_verify",
        "sanitizers": "sanitizers",
    }
    assert [order[name] for name in named] == [gate.name for gate in anticheat.GATES]


def test_counts_of_calls_and_draws_add_up() -> None:
    final = protocols.FINAL
    assert final.inputs * (final.runs + protocols.WARMUP) == 24
    assert final.inputs * final.runs == 20
    assert rep_variation.POOL_SIZE == 6
    assert len(HELD_OUT) == 5
    assert _default("fuzz.hidden_correctness_presets") == ["XL", "M", "M", "L", "S"]
    assert _default("timeouts.kernel_s_by_level") == {1: 180.0, 2: 300.0, 3: 600.0}
    assert timing.STOPPED_CREDIT_CAP == 0.5


def test_five_against_five_runs_reach_one_in_252() -> None:
    assert timing.mannwhitney_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(1 / 252)


def test_the_worked_example_prints_what_its_comments_say() -> None:
    code = PAGE.partition("```python\n")[2].partition("```")[0]
    said = [line.partition("  # ")[2] for line in code.splitlines() if "  # " in line]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "scoring.md", "exec"), {})
    assert out.getvalue().splitlines() == said


@pytest.mark.parametrize("name", [n for row in _rows("## 9.") for n in re.findall(r"`([\w.]+)`", row[1])])
def test_every_rule_lives_where_the_page_says(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"hpcagent_bench.{module}"), attribute)
