"""docs/measurement.md says what the code does: settings, tables, numbers, commands are read off the page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcagent_bench import cli, paths, protocols
from hpcagent_bench.calibration import neighbours, nominal, report, spread
from hpcagent_bench.harness.machine import node_loops
from hpcagent_bench.harness.timed import schedule, suspects, timed_calls, transport
from hpcagent_bench.report import calibration
from hpcagent_bench.stats import summary

PAGE = (Path(__file__).parents[2] / "docs" / "measurement.md").read_text()
SETTING = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+) = ([^`]+)`")


def default(key: str) -> Any:
    """The shipped default of a judge setting."""
    found: Any = yaml.safe_load((paths.conf_root() / "judge" / "default.yaml").read_text())
    for part in key.split("."):
        found = found[part]
    return found


def rows(after: str) -> list[list[str]]:
    """The cells of the first table behind a heading, without its two head lines."""
    lines = itertools.dropwhile(lambda line: not line.startswith("|"), PAGE.partition(after)[2].splitlines())
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table][2:]


@pytest.mark.parametrize(("key", "value"), sorted(set(SETTING.findall(PAGE))))
def test_a_setting_on_the_page_is_the_shipped_default(key: str, value: str) -> None:
    assert yaml.safe_load(value) == default(key)


def test_every_setting_of_the_nodes_proof_is_on_the_page() -> None:
    named = {key for key, _ in SETTING.findall(PAGE)}
    measured = yaml.safe_load((paths.conf_root() / "judge" / "default.yaml").read_text())["measurement"]
    assert {f"measurement.{key}" for key in measured if key.startswith("node_")} <= named


def test_the_protocol_table_is_the_registry() -> None:
    table = {row[0].strip("`"): tuple(map(int, row[1:4])) for row in rows("## Protocols")}
    known = {s: p for s, p in protocols.REGISTRY.items() if p.role != "calibration"}
    assert table == {s: (p.inputs, p.runs, schedule.processes(p)) for s, p in known.items()}


def test_the_arithmetic_of_the_nominal_rate() -> None:
    """The number of ways to write U as a partition into at most five parts of at most five, summed up."""
    lines = [line for line in PAGE.splitlines() if line.startswith(("| splits", "| p ="))]
    splits = [int(cell) for cell in lines[0].strip("|").split("|")[1:]]
    counted = [0] * 26
    for mine in itertools.combinations(range(10), 5):
        counted[sum(rank - place for place, rank in enumerate(mine))] += 1
    assert splits == counted[:7]
    shown = [float(cell) for cell in lines[1].strip("|").split("|")[1:]]
    assert shown == [round(total / 252, 3) for total in itertools.accumulate(splits)]
    assert nominal.nominal_rate(5, 0.1) * 252 == 38
    assert "38 of 252 inputs, 15.1 %" in PAGE


def test_numbers_in_the_text_are_the_codes() -> None:
    words = " ".join(PAGE.split())
    runner = (paths.package_root() / "harness" / "runner" / "runner.c").read_text()
    calibrations = re.search(r"CALIBRATIONS = (\d+)", runner)
    assert calibrations is not None
    sweep_mib = node_loops.SWEEP_WORDS * 8 // 2**20
    for text in (
        f"times {calibrations.group(1)} calls of an empty function",
        f"the last {transport.RECENT} calls",
        f"{transport.UNKNOWN.wall / 1e3:.0f} microseconds are allowed",
        f"up to {suspects.WAITING_TIMES:.0f} times the slack or {suspects.WAITING_NS // 10**6} ms",
        f"measured again, at most {timed_calls.ATTEMPTS} times in all",
        f"({suspects.CPU_SLACK_SHARE:.0%}".replace("%", " %")
        + f" and {suspects.CPU_SLACK_NS // 10**6} ms allowed)",
        f"best of {node_loops.PEAK_BURSTS} bursts",
        f"blocks of {node_loops.PEAK_WORDS[0] * 8 // 1024} to {node_loops.PEAK_WORDS[-1] * 8 // 1024} KiB",
        f"a sweep of {sweep_mib} MiB",
        f"{summary.RESAMPLES} resamples, seed {summary.SEED}",
        f"{spread.SIMULATIONS} simulated tasks",
        f"beyond what {spread.LEVEL:.0%}".replace("%", " %"),
        f"happens in {spread.POWER:.0%}".replace("%", " %"),
        "more than a tenth of the looks",
        "beside two busy processes",
    ):
        assert text in words, text
    assert (report.UNSTABLE_SHARE, neighbours.COUNT) == (0.1, 2)


def test_500_inputs_show_a_rate_of_a_fifth_in_four_cases_of_five() -> None:
    """The power of the verdict, from the binomial distribution."""
    from scipy import stats

    breach = [k for k in range(501) if not nominal.rate(k, 500, 38 / 252).kept]
    assert float(stats.binom.sf(min(breach) - 1, 500, 0.20)) == pytest.approx(0.8, abs=0.05)
    assert (calibration.ENOUGH_INPUTS, round(0.20 / (38 / 252), 1)) == (500, 1.3)


def test_causes_on_the_page_are_those_a_look_can_name() -> None:
    source = (paths.package_root() / "harness" / "machine" / "node.py").read_text()
    named = set(re.findall(r'(?:share|Excess)\("([a-z]+)"', source)) | {"governor"}
    assert {row[0] for row in rows("### An unstable machine")} == named


def test_the_commands_on_the_page_are_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names only options its verb has."""
    import shlex
    import sys

    lines = [line for line in PAGE.splitlines() if line.startswith("hpcagent-bench ")]
    assert lines
    for line in lines:
        verb, *words = shlex.split(line, comments=True)[1:]
        monkeypatch.setattr(sys, "argv", ["hpcagent-bench", verb, *words, "--help"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
