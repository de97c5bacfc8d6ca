"""The loop-level study: its setups, what they are compared with, and what this version refuses to launch."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from launching import launch

from experiments import show, study
from experiments.compose import compose
from experiments.launch import plan_of, plan_record, prepare
from experiments.study import StudySetup
from hpcagent_bench import config
from hpcagent_bench.errors import UserError

MODELS = ("qwen38", "oss120b", "kimi27sglang")
LLR = "+study=llr40"


@pytest.fixture(scope="module")
def composed() -> config.Root:
    return compose([LLR]).root


@pytest.fixture
def root(composed: config.Root) -> config.Root:
    return copy.deepcopy(composed)


@pytest.fixture(scope="module")
def setups(composed: config.Root) -> dict[str, StudySetup]:
    return {setup.name: setup for setup in study.expand(composed)}


def tables() -> dict[str, str]:
    """Every pair of the three tables of scoring.md section 11: treatment -> control."""
    suffixes = {f"c-{packet}": "c" for packet in ("cpf-tool", "cpf-src")}
    suffixes |= {f"{lang}-skills": lang for lang in ("c", "fortran", "c-openmp", "hip", "triton")}
    return {f"llr40-{m}-{a}": f"llr40-{m}-{b}" for m in MODELS for a, b in suffixes.items()}


def test_it_holds_the_setups_of_the_tables_and_a_model_free_row(setups: dict[str, StudySetup]) -> None:
    pairs = tables()
    model_free = {"llr40-c-reference", "llr40-c-autotune"}
    assert set(setups) == {*pairs, *pairs.values(), *model_free}
    assert len(pairs) == 21  # 6 of CPF, 6 of skills on CPUs, 9 on GPUs


def test_controls_differ_in_the_packet_alone(root: config.Root, setups: dict[str, StudySetup]) -> None:
    found = study.controls(root, list(setups.values()))
    assert found == {**tables(), "llr40-c-autotune": "llr40-c-reference"}


def test_rows_record_what_the_names_abbreviate(setups: dict[str, StudySetup]) -> None:
    row = setups["llr40-qwen38-hip-skills"].row
    assert (row.model, row.language, row.device) == ("Qwen3.8-27B", "hip", "gpu")
    assert (row.packet, row.harness, row.study) == ("lang-skills", "claude", "llr40")
    assert setups["llr40-c-autotune"].row.model is None


def test_budgets_and_rung(root: config.Root) -> None:
    assert (root.study.budgets.max_tokens, root.study.budgets.timeout_s) == (24_000_000, 8 * 3600)
    assert (root.study.submission_mode, root.sizes.name) == ("single", "xl")


def test_the_whole_plan_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = launch(LLR, "action=plan")
    assert done.returncode == 0, done.stderr
    # 38 setups of 40 kernels, eight a job; 36 of them may spend the budget's tokens on each
    assert "1520 episodes in 190 node jobs (38 arrays)" in done.stdout
    assert f"at most {36 * 40 * 24_000_000:,} tokens" in done.stdout
    assert "18 setups cannot run: device gpu is not graded by this version" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_gpu_setups_are_planned_on_their_own_partition() -> None:
    prepared = prepare([LLR, "setups=*-hip,llr40-c-*"])
    plan = plan_of(prepared, None)
    hours = {name: seconds / 3600 for name, seconds in plan.seconds_by_partition.items()}
    assert set(hours) == {"local", "h20"}
    # eight agents at once: 8 h, a grade of 300 s and 60 s around, for 3 setups of 5 jobs
    assert hours["h20"] == pytest.approx(15 * (8 + 360 / 3600))
    assert plan_record(prepared, plan)["controls"]["llr40-c-autotune"] == "llr40-c-reference"


def test_a_device_may_be_given_another_partition() -> None:
    root = compose([LLR, "study.partitions={gpu: devcluster}", "partitions.gpu.workers=3"]).root
    assert (root.partitions["gpu"].name, root.partitions["gpu"].workers) == ("devcluster", 3)
    assert study.partition_of(root, "gpu") is root.partitions["gpu"]
    assert study.partition_of(root, "cpu") is root.partition


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("study.partitions={gpus: h20}", "gpus is no device; did you mean 'gpu'?"),
        ("study.partitions={gpu: h2}", "partition=h2 is no partition .* did you mean 'h20'?"),
    ],
)
def test_a_partition_that_does_not_exist_is_refused(word: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        compose([LLR, word])


@pytest.mark.parametrize(
    ("setups", "told"),
    [
        ("llr40-qwen38-c", "llr40-qwen38-c cannot run: harness claude asks a model"),
        ("*-cpf-src", "packet cpf-src is not handed out by this version (and 2 more of 3 setups)"),
        ("*-triton", "device gpu is not graded by this version"),
        ("*", "(and 35 more of 38 setups)"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_queued(
    setups: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = launch(LLR, f"setups={setups}", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert "can run: setups=llr40-c-reference,llr40-c-autotune" in done.stderr
    assert not list(tmp_path.glob("runs/llr40-*"))


def test_the_model_free_row_has_no_obstacle_and_costs_nothing() -> None:
    prepared = prepare([LLR, "setups=*-autotune-*"])
    plan = plan_of(prepared, None)
    assert {item.work.setup for item in plan.owed.owed} == {"llr40-c-autotune"}
    assert (len(plan.owed.owed), plan.max_tokens) == (40, 0)
    assert show.obstacle_lines(prepared.setups, ["llr40-c-autotune"]) == []


def test_a_harness_without_a_program_is_an_obstacle(setups: dict[str, StudySetup]) -> None:
    setup = copy.deepcopy(setups["llr40-c-autotune"])
    setup.harness.argv.clear()
    assert study.obstacle(setup) == "harness autotune names no program to run (argv)"


def test_a_packet_reaches_only_the_languages_it_is_made_for(root: config.Root) -> None:
    for packet in root.packets.values():
        packet.languages = ["fortran"] if packet.packet == "cpf-src" else packet.languages
    names = [setup.name for setup in study.expand(root)]
    assert "llr40-qwen38-fortran-cpf-src" in names
    assert "llr40-qwen38-c-cpf-src" not in names


def test_a_control_that_is_no_setup_is_refused(root: config.Root) -> None:
    root.study.controls["c"] = "llr40-{model}-cc"
    with pytest.raises(UserError, match=r"controls\.c=llr40-\{model\}-cc is no setup for llr40-qwen38-c"):
        study.controls(root, study.expand(root))


def test_a_pattern_finds_a_part_at_the_end_of_a_name() -> None:
    names = ["llr40-c-autotune", "llr40-autotune-c", "llr40-c-autotuned"]
    assert study.chosen(names, ["*-autotune-*"], "setups") == ("llr40-c-autotune", "llr40-autotune-c")
