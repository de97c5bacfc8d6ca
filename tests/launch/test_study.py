"""Setups, their names and work, and the identity by which a study is found again."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from experiments import study
from experiments.compose import compose
from hpcagent_bench import config
from hpcagent_bench.episodes import Work
from hpcagent_bench.errors import UserError


@pytest.fixture(scope="module")
def composed() -> config.Root:
    return compose(["+study=quickstart"]).root


@pytest.fixture
def root(composed: config.Root) -> config.Root:
    return copy.deepcopy(composed)


def with_model(root: config.Root, name: str, model: str) -> None:
    root.models[name] = config.Model(name, model)
    root.study.models.append(name)
    root.harnesses["claude"] = config.Harness("claude", argv=["claude"])
    root.study.harnesses.append("claude")


def test_model_free_setups_leave_the_model_out(root: config.Root) -> None:
    assert [s.name for s in study.expand(root)] == ["quickstart-c-reference", "quickstart-c-autotune"]


def test_models_meet_only_harnesses_that_ask_them(root: config.Root) -> None:
    with_model(root, "qwen38", "Qwen/Qwen3.8-27B:free")
    setups = study.expand(root)
    assert [s.name for s in setups][2:] == ["quickstart-qwen38-c-claude"]
    assert setups[2].row.model == "Qwen/Qwen3.8-27B:free"
    assert setups[0].row.model is None


@pytest.mark.parametrize(
    ("packet", "name"),
    [("cpf-src", "q-m-c-cpf-src-h"), ("cpf-tool+skills", "q-m-c-cpf-tool-skills-h"), ("", "q-m-c-h")],
)
def test_names_are_safe_parts(packet: str, name: str) -> None:
    assert study.setup_name("q", config.Model("m", "x/y:z"), "c", packet, "h") == name


def test_awkward_names_become_slugs() -> None:
    assert study.slug("Gemm v2 (fast)\n#SBATCH --x") == "gemm-v2-fast-sbatch-x"
    assert study.slug("openai/gpt-4o:free") == "openai-gpt-4o-free"


def test_a_study_without_a_fitting_pair_is_refused(root: config.Root) -> None:
    for harness in root.harnesses.values():
        harness.needs_model = True
    with pytest.raises(UserError, match="no model fits a harness"):
        study.expand(root)


def test_work_is_every_setup_kernel_and_slot() -> None:
    assert study.work_of(["a"], ["k", "l"], 2) == (
        Work("a", "k", 1),
        Work("a", "k", 2),
        Work("a", "l", 1),
        Work("a", "l", 2),
    )


def test_filters_keep_order_and_refuse_what_matches_nothing() -> None:
    assert study.chosen(["b", "a", "ab"], ["a*"], "kernels") == ("a", "ab")
    assert study.chosen(["b", "a"], [], "kernels") == ("b", "a")
    with pytest.raises(UserError, match="kernels=x"):
        study.chosen(["b", "a"], ["x"], "kernels")


def identity(root: config.Root) -> str:
    return study.identity(root, study.expand(root), ["k1", "k2"])


def set_key(key: str, value: object) -> Callable[[config.Root], None]:
    def change(root: config.Root) -> None:
        *path, last = key.split(".")
        target: object = root
        for part in path:
            target = getattr(target, part)
        setattr(target, last, value)

    return change


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cluster.name", "slurm"),
        ("cluster.account", "a"),
        ("partition.time", "99:00:00"),
        ("partition.workers", 7),
        ("study.budgets.timeout_s", 1),
        ("study.budgets.max_tokens", 1),
        ("judge.timeouts.kernel_s", 1.0),
        ("judge.limits.kernel_memory_gb", 1.0),
        ("runs", "/elsewhere"),
        ("fresh", True),
        ("study.title", "another"),
    ],
)
def test_where_and_how_long_work_runs_is_no_part_of_it(root: config.Root, key: str, value: object) -> None:
    before = identity(root)
    set_key(key, value)(root)
    assert identity(root) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("study.repeat", 2),
        ("study.submission_mode", "multi"),
        ("study.tag", "other"),
        ("sizes.bytes", 1),
        ("judge.measurement.credited_protocol", "mw4x10"),
        ("judge.measurement.denominator.loop_level_reasoning", "c"),
        ("judge.seeds.fuzz", 1),
        ("judge.service.datatype", "float32"),
        ("judge.grading.seal", False),
        ("study.harnesses", ["reference"]),
    ],
)
def test_what_makes_results_comparable_is_part_of_it(root: config.Root, key: str, value: object) -> None:
    before = identity(root)
    set_key(key, value)(root)
    assert identity(root) != before


def test_kernels_are_part_of_it_in_any_order(root: config.Root) -> None:
    setups = study.expand(root)
    assert study.identity(root, setups, ["k2", "k1"]) == identity(root)
    assert study.identity(root, setups, ["k1"]) != identity(root)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"partition.mem": "64G", "partition.mem_per_cpu": "2G"}, "keep one"),
        ({"partition.judge_cores": 2}, "exceed cores=2"),
        ({"partition.gpu_type": "h20"}, "without gpus"),
        ({"partition.gpus": 1}, "choose a Slurm cluster"),
        ({"judge.measurement.credited_protocol": "mw2x5"}, "mw2x5"),
        ({"judge.measurement.preview_protocol": "mw9x9"}, "mw9x9"),
    ],
)
def test_contradictions_are_refused(root: config.Root, changes: dict[str, object], told: str) -> None:
    for key, value in changes.items():
        set_key(key, value)(root)
    with pytest.raises(UserError, match=told):
        study.check(root)
