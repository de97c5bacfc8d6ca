"""grading_cuts.yaml: dates by kernel and by reference kind, and whose grades they touch."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpcagent_bench import config
from hpcagent_bench.corpus import spec
from hpcagent_bench.errors import UserError
from hpcagent_bench.finals import Final
from hpcagent_bench.harness import denominator, final_rule, grading_cuts

NEW_YEAR = 1_767_225_600_000
"""2026-01-01T00:00:00Z in milliseconds, as date --date gives it."""

HOUR = 3_600_000


def written(folder: Path, text: str) -> Path:
    path = folder / "grading_cuts.yaml"
    path.write_text(text)
    return path


def test_a_date_is_its_midnight_and_a_moment_itself_both_utc(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "kernels: {a: 2026-01-01, b: 2026-01-01T01:00:00Z, c: 2026-01-01T01:00:00}\n"
        "references: {numba: 2026-01-01T03:00:00+02:00}\n",
    )
    cuts = grading_cuts.load(["a", "b", "c"], path)
    assert [cuts.kernels[name].before_ms - NEW_YEAR for name in "abc"] == [0, HOUR, HOUR]
    assert cuts.references["numba"].before_ms - NEW_YEAR == HOUR
    assert str(cuts.kernels["b"]) == "the cut of b (2026-01-01 01:00 UTC)"


def test_the_latest_cut_of_kernel_and_raced_references_counts(tmp_path: Path) -> None:
    path = written(tmp_path, "kernels: {a: 2026-01-02}\nreferences: {numba: 2026-01-03, c: 2026-01-01}\n")
    cuts = grading_cuts.load(["a", "b"], path)
    found = {
        (kernel, kinds): cut.name if (cut := cuts.of(kernel, kinds.split())) else None
        for kernel in "ab"
        for kinds in ("c numba", "c", "torch-autotune")
    }
    assert list(found.values()) == ["numba", "a", "a", "numba", "c", None]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kernel: {}", "'kernel' is no section; did you mean 'kernels'"),
        ("kernels: {tsvc_2_s31: 2026-01-01}", "kernels.tsvc_2_s31 is not known; did you mean 'tsvc_2_s311'"),
        ("references: {nunba: 2026-01-01}", "references.nunba is not known; did you mean 'numba'"),
        ("kernels: {tsvc_2_s311: soon}", "kernels.tsvc_2_s311='soon' is no date"),
        ("kernels: {tsvc_2_s311: 20260101}", "kernels.tsvc_2_s311=20260101 is no date"),
        ("kernels: [tsvc_2_s311]", "kernels is no mapping"),
        ("[]\n- x", "not a YAML file"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        grading_cuts.load(["tsvc_2_s311"], written(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path}/grading_cuts.yaml: ")
    assert problem in str(caught.value)


def test_the_file_of_this_package_is_read_and_an_empty_one_cuts_nothing(tmp_path: Path) -> None:
    assert final_rule.of(config.Judge()).stamp == "mw4x5"
    assert final_rule.of(config.Judge(), cuts_file=written(tmp_path, "")).cuts == {}


def test_a_reference_cuts_the_kernels_whose_denominator_races_it(tmp_path: Path) -> None:
    path = written(tmp_path, "references: {numba: 2026-01-01}\n")
    judge = config.Judge()
    judge.measurement.denominator.loop_level_reasoning = "c"
    rule = final_rule.of(judge, cuts_file=path)
    assert rule.cut("tsvc_2_s311", 0) is None
    racing = next(name for name, told in rule.denominators.items() if told == "best-of(numba,c)")
    made = Final("graded", credited=2.0, correct=True, stamp="mw4x5", denominator="best-of(numba,c)")
    old = final_rule.of(config.Judge(), cuts_file=path).objection
    assert old(racing, made) == "its final grade is older than the cut of numba (2026-01-01 00:00 UTC)"
    assert rule.cut(racing, NEW_YEAR - 1) is not None
    assert rule.cut(racing, NEW_YEAR) is None


def test_the_rule_names_the_denominator_that_the_judge_uses(tmp_path: Path) -> None:
    settings = config.Judge().measurement
    settings.denominator.scientific_computing = "numba"
    rule = final_rule.of(dataclasses.replace(config.Judge(), measurement=settings))
    kernels = sorted(spec.discover())[::9]
    for name in kernels:
        assert rule.denominators[name] == denominator.for_kernel(spec.load(name), settings).name
    assert {rule.denominators[name] for name in kernels} == {"best-of(numba,c)", "numba"}
    shipped = tmp_path / "k.yaml"
    shipped.write_text("name: K  # its baseline\nbaseline: {kind: vendored, source: k.c, language: c}\n")
    assert final_rule._ships_baseline(shipped)
    (tmp_path / "l.yaml").write_text("name: L  # no baseline\n")
    assert not final_rule._ships_baseline(tmp_path / "l.yaml")
