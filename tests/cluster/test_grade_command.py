"""``hpcagent-bench grade``: a file graded by hand, as the judge would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpcagent_bench import translators
from hpcagent_bench.corpus import spec
from hpcagent_bench.report import grade_page
from hpcagent_bench.toolchain import flags

KERNEL = "tsvc_2_s311"
GATES = ["build", "timed_calls", "size_class_sweep", "independent_verify", "sanitizers"]


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpcagent_bench.cli", "grade", KERNEL, "--sizes", "tiny", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def told(*argv: str) -> tuple[int, dict[str, Any]]:
    done = run(*argv, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.c"
    path.write_text(translators.emit(spec.load(KERNEL), "c"))
    return path


def test_an_honest_file_is_accepted_with_every_gate_and_input(source: Path) -> None:
    code, facts = told(str(source))
    assert (code, facts["accepted"], facts["status"]) == (0, True, "ok"), facts["reason"]
    assert (facts["protocol"], facts["preset"], len(facts["inputs"])) == ("mw4x5", "tiny", 4)
    assert [gate["gate"] for gate in facts["gates"]] == GATES
    assert {gate["outcome"] for gate in facts["gates"]} <= {"passed", "not applied"}
    assert facts["phases"]["build"] > 0
    for row in facts["inputs"]:
        assert row["measured"] == pytest.approx(row["baseline_ns"] / row["native_ns"])


def test_a_preview_of_a_library_needs_no_compiler(source: Path) -> None:
    library = source.with_suffix(".so")
    subprocess.run(flags.compile_command("c", source, library), check=True)
    code, facts = told(str(library), "--preview")
    assert (code, facts["delivery"], facts["protocol"]) == (0, "library", "mw2x5")
    assert [gate["gate"] for gate in facts["gates"]] == GATES[:2]
    assert len(facts["inputs"]) == 2


def test_a_python_file_is_graded(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def tsvc_2_s311(a, sum_out, LEN_1D):\n    sum_out[0] = a.sum()\n")
    code, facts = told(str(path), "--preview")
    assert (code, facts["language"], facts["accepted"]) == (0, "python", True), facts["reason"]


def test_a_wrong_file_is_refused_by_name_of_gate_and_input(source: Path) -> None:
    source.write_text(source.read_text().replace("= s;", "= s + 1;"))
    done = run(str(source))
    assert done.returncode == 1
    assert "refused (incorrect): input 1" in done.stdout
    assert "timed_calls failed, size_class_sweep not reached" in done.stdout
    assert "timing input 1 of 4" in done.stderr
    source.write_text("nonsense")
    code, facts = told(str(source))
    assert (code, facts["status"], facts["gates"][0]["outcome"]) == (1, "build_error", "failed")
    assert "error" in facts["build"]["log"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["none.c"], "no such file"),
        (["{folder}/mine.txt"], "does not tell its language"),
        (["{folder}/mine.c", "--build", "-lcuda"], "-lcuda is not allowed"),
        (["{folder}/mine.c", "--build", "-Ofast"], "-Ofast is never allowed"),
        (["{folder}/mine.c", "--family", "nvhpc"], "families here"),
        (["{folder}/mine.c", "--language", "cobol"], "language is 'cobol'"),
        (["{folder}/mine.c", "--workspace", "N"], "names here: LEN_1D"),
        (["{folder}/mine.c", "--cores", "4096"], "not granted"),
        (["{folder}/mine.c", "--sizes", "hgue"], "hgue"),
        (["{folder}/mine.c", "--seeds", "none.json"], "no seeds file"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(source: Path, argv: list[str], words: str) -> None:
    source.with_suffix(".txt").write_text("x")
    done = run(*(part.format(folder=source.parent) for part in argv))
    assert done.returncode == 2
    assert words in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_help_has_an_example() -> None:
    command = [sys.executable, "-m", "hpcagent_bench.cli", "grade", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Example: hpcagent-bench grade" in done.stdout


def page(**more: Any) -> str:
    facts = {
        "kernel": "k",
        "language": "c",
        "family": "gcc",
        "route": "final",
        "protocol": "mw4x5",
        "preset": "tiny",
        "denominator": "c",
        "accepted": True,
        "solved": True,
        "score": 1.5,
        "gsd": 1.1,
        "reason": "",
        "suspicion": "",
        "status": "ok",
        "judge_fault": False,
        "inputs": [],
        "gates": [],
        "notes": [],
        "phases": {},
        "build": None,
    }
    out = Console(width=200, record=True, highlight=False)
    grade_page.show({**facts, **more}, out)
    return out.export_text()


def test_the_headline_says_what_became_of_it() -> None:
    assert "accepted: score 1.500 over 0 inputs" in page()
    assert "not graded: the judge failed: infra: x" in page(
        judge_fault=True, accepted=False, reason="infra: x"
    )
    assert "not to be credited: every input is suspect" in page(
        solved=False, reason="every input is suspect: y"
    )
    assert "[a] [b]" in page(notes=["[a] [b]"])


@pytest.mark.parametrize(
    ("ns", "text"), [(None, "-"), (12.0, "12 ns"), (1500.0, "1.5 us"), (2.5e6, "2.5 ms"), (3e9, "3 s")]
)
def test_times_in_the_unit_that_suits(ns: float | None, text: str) -> None:
    assert grade_page.seconds(ns) == text
