"""docs/anti_cheat.md names every gate, rule and attack there is, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench import paths, seal
from hpcagent_bench.harness import anticheat
from hpcagent_bench.harness.building.build_log import LOG_MAX
from hpcagent_bench.harness.timed import suspects, timed_calls

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "anti_cheat.md").read_text()
NAMED = re.findall(r"`((?:[a-z_]+/)+test_[a-z_0-9]+\.py)`", PAGE)
SETTING = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+) = ([^`]+)`")
HONEST = re.compile(r"def test_\w*(twin|right|accept|graded|ordinary|holder|have_each|waits)")
NO_SOURCE = {"test_whole_corpus.py"}
"""Attacks that hand in nothing, so that there is nothing to do honestly."""


def default(key: str) -> Any:
    found: Any = yaml.safe_load((paths.conf_root() / "judge" / "default.yaml").read_text())
    for part in key.split("."):
        found = found[part]
    return found


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its two head lines."""
    after = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in after.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][2:]


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_a_test_on_the_page_exists(name: str) -> None:
    place = ROOT / name if name.startswith("tests/") else ROOT / "tests" / "attacks" / name
    assert place.is_file()


def test_every_attack_is_on_the_page_once() -> None:
    folder = ROOT / "tests" / "attacks"
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py"))
    assert sorted(name for name in NAMED if not name.startswith("tests/")) == there


def test_every_attack_has_an_honest_twin() -> None:
    attacks = (ROOT / "tests" / "attacks").rglob("test_*.py")
    assert {path.name for path in attacks if not HONEST.search(path.read_text())} <= NO_SOURCE


def test_the_gates_are_described_in_their_order_with_their_tests() -> None:
    described = rows("The gates")
    assert [cells[0].strip("`") for cells in described] == [gate.name for gate in anticheat.GATES]
    for name, stops, how, tests in described:
        assert stops, name
        assert how, name
        assert "`tests/" in tests, name


def test_the_rules_of_suspicion_are_described() -> None:
    described = [cells[0].strip("`") for cells in rows("What makes an input suspect")]
    assert described == [rule.__name__ for rule in (*suspects.RULES, suspects.unattested)]


@pytest.mark.parametrize(("key", "value"), sorted(set(SETTING.findall(PAGE))))
def test_a_setting_on_the_page_is_the_shipped_default(key: str, value: str) -> None:
    assert yaml.safe_load(value) == default(key) or (key, value) == ("grading.seal", "false")


def test_numbers_on_the_page_are_the_codes() -> None:
    assert seal.SCRATCH_BYTES == 64 << 20
    assert LOG_MAX == 64 << 10
    assert timed_calls.ATTEMPTS == 3
