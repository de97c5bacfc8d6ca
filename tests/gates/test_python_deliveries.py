"""Python deliveries: told early when they are no module, graded like the others when they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcagent_bench.harness.building import python_source
from hpcagent_bench.harness.context import GradingContext
from tests.support.gate_rig import KERNEL, PYTHON, submit

NUMBA = """import numba

@numba.njit
def polygon_area_terms(x, y, area, LEN_1D):
    for i in range(LEN_1D):
        before = i - 1 if i else LEN_1D - 1
        area[i] = (x[i] + x[before]) * (y[i] - y[before])
"""


def check(text: str, folder: Path, sealed: bool = True) -> python_source.Build:
    return python_source.check(text, KERNEL.symbol, KERNEL.function, folder, timeout_s=30, sealed=sealed)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_module_is_kept_as_it_is(tmp_path: Path, sealed: bool) -> None:
    made = check(PYTHON, tmp_path, sealed)
    assert made.ok, made.log
    assert made.library == tmp_path / "polygon_area_terms.py"
    assert made.library.read_text() == PYTHON
    assert [name for name, _ in made.commands] == ["python", "numpy", "numba"]
    assert made.digest == check(PYTHON, tmp_path / "again").digest


@pytest.mark.parametrize(
    "text",
    [
        "import math as polygon_area_terms\n",
        "if True:\n    polygon_area_terms = print\n",
        "from os import path as polygon_area_terms\n",
        "try:\n    def polygon_area_terms(*a): pass\nfinally:\n    pass\n",
    ],
)
def test_a_name_may_come_about_in_any_way(tmp_path: Path, text: str) -> None:
    assert check(text, tmp_path).ok


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def polygon_area_terms(:\n    pass\n", "polygon_area_terms.py:1: error: SyntaxError: "),
        ("x = 1\n  y = 2\n", "polygon_area_terms.py:2: error: IndentationError: unexpected indent"),
        ("def other():\n    def polygon_area_terms(): pass\n", "defines no function polygon_area_terms"),
        ("polygon_area_terms\n", "defines no function polygon_area_terms"),
        ("", "defines no function polygon_area_terms"),
        ("x = '\udc80'\n", "defines no function polygon_area_terms"),
        ("def polygon_area_terms(): pass\0\n", "null bytes"),
        ("x = " + "(" * 100_000 + ")" * 100_000, "polygon_area_terms.py"),
        ("x = " + "-" * 1_000_000 + "1", "polygon_area_terms.py"),
    ],
    ids=["syntax", "indent", "inner", "read only", "empty", "no text", "null", "nested", "signs"],
)
def test_what_is_no_module_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    made = check(text, tmp_path)
    assert not made.ok
    assert made.library is None
    assert said in made.log or "status" in made.log or "killed" in made.log, made.log
    assert str(tmp_path) not in made.log


def test_the_check_runs_nothing_of_it(tmp_path: Path) -> None:
    text = f"open('{tmp_path}/ran', 'w')\nraise SystemExit(3)\n" + PYTHON
    assert check(text, tmp_path / "made", sealed=False).ok
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", [PYTHON, NUMBA], ids=["numpy", "numba"])
def test_right_modules_are_solved_and_wrong_ones_refused(context: GradingContext, text: str) -> None:
    verdict = submit(context, text, "python")
    assert (verdict.status, verdict.reason) == ("ok", "")
    assert "sanitizers not applied: python is not compiled" in verdict.notes
    wrong = submit(
        context,
        text + "\nright = polygon_area_terms\n"
        "def polygon_area_terms(x, y, area, LEN_1D):\n    right(x, y, area, LEN_1D)\n    area[3] += 0.5\n",
        "python",
    )
    assert wrong.status == "incorrect"
    assert "area[3]" in wrong.reason


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("def polygon_area_terms(:\n", "build_error", "polygon_area_terms.py:1: error: SyntaxError"),
        ("import absent_module\n" + PYTHON, "incorrect", "absent_module"),
        (
            "def polygon_area_terms(x, y, area, LEN_1D):\n    raise ValueError('no')\n",
            "incorrect",
            "ValueError",
        ),
        ("def polygon_area_terms(x):\n    pass\n", "incorrect", "TypeError"),
        (PYTHON.replace("area[:]", "x[:]"), "incorrect", "read-only"),
        (PYTHON + "\nif __import__('os').path.exists('/etc/passwd'):\n    raise SystemExit\n", "ok", ""),
    ],
    ids=["syntax", "import", "raises", "arity", "writes an input", "sees no host file"],
)
def test_python_failures_are_told(context: GradingContext, text: str, status: str, reason: str) -> None:
    verdict = submit(context, text, "python")
    assert (verdict.status, reason in verdict.reason) == (status, True), verdict.reason


def test_a_special_case_is_overfit_in_python_too(context: GradingContext) -> None:
    verdict = submit(context, PYTHON + "    if LEN_1D < 4096:\n        area[0] = 0.5\n", "python")
    assert verdict.status == "overfit"
    assert verdict.reason.startswith("size_class_sweep: h5 at preset S: area is wrong in 1 of 512")
