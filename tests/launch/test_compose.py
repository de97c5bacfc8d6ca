"""What an operator types is composed, or refused in one line that says what to type instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.compose import compose, load, members
from hpcagent_bench import config, paths
from hpcagent_bench.config_check import check_file, check_override
from hpcagent_bench.errors import UserError

QUICK = "+study=quickstart"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A copy of the configuration tree that a test may spoil."""
    return Path(shutil.copytree(paths.conf_root(), tmp_path / "conf"))


@pytest.fixture
def edit(conf: Path) -> Callable[[str, str, str], None]:
    def replace(name: str, old: str, new: str) -> None:
        path = conf / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return replace


def refusal(words: list[str], conf: Path | None = None) -> str:
    with pytest.raises(UserError) as caught:
        compose(words, conf)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_quickstart_is_what_its_files_say() -> None:
    root = compose([QUICK]).root
    assert (root.sizes.name, root.cluster.name, root.partition.name) == ("laptop", "local", "local")
    assert list(root.harnesses) == ["reference", "autotune"]
    assert root.judge == config.Judge()


def test_the_command_line_wins_over_the_study_and_the_cluster() -> None:
    root = compose([QUICK, "sizes=tiny", "cluster=slurm", "partition=h20"]).root
    assert (root.sizes.name, root.partition.gpus) == ("tiny", 8)


def test_a_cluster_brings_its_partition() -> None:
    assert compose([QUICK, "cluster=slurm"]).root.partition.name == "spr"


def test_study_may_be_named_without_plus() -> None:
    assert compose(["study=quickstart"]).root.study.experiment == "quickstart"


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        (
            "judge.measurement.early_stop=3",
            ["command line", "early_stop=3", "unknown key", "'early_stop_factor'"],
        ),
        ("judge.name=1.10", ["judge.name=1.10", "read as a number", "'judge.name=\"1.10\"'"]),
        ("study.experiment=12e4567", ["study.experiment=12e4567", "read as a number", "quote it"]),
        ("partition.time=1:30:00", ["partition.time=1:30:00", "read as a number", "quote it"]),
        ('partition.time="90 min"', ["partition.time='90 min'", "HH:MM:SS"]),
        ("partition.nodelist=123_456", ["123_456", "read as a number"]),
        ("cluster.account=no", ["cluster.account=no", "truth value"]),
        ("study.repeat=two", ["study.repeat=two", "not a whole number"]),
        ("study.repeat=0", ["study.repeat=0", "below 1"]),
        ("study.repeat=1.5", ["study.repeat=1.5", "not a whole number"]),
        ("judge.grading.seal=off", ["judge.grading.seal=off", "true or false"]),
        ("action=plann", ["action='plann'", "did you mean 'plan'?"]),
        ("cluster=devclstr", ["cluster=devclstr", "did you mean 'devcluster'?"]),
        ("clster=local", ["clster=local", "did you mean 'cluster'?"]),
        ("study.harnesses=autotun", ["harness=autotun", "did you mean 'autotune'?"]),
        ("study.harnesses=autotune,autotune", ["twice"]),
        ("study.models=[]", ["study.models is empty", "none"]),
        ("harness=autotune", ["harness=autotune", "study.harnesses=autotune"]),
        ("study.budgets=5", ["study.budgets=5", "a group of keys is wanted"]),
        ("judge.name.x=5", ["judge.name.x=5", "below a single value"]),
        ("judge.measurement.early_stop_factor=inf", ["finite"]),
        ("~judge", ["'~judge'", "key=value"]),
        ("judge.measurement.denominator.machine_learning=nump", ["'nump'", "did you mean 'numpy'?"]),
    ],
)
def test_a_wrong_word_is_refused(word: str, parts: list[str]) -> None:
    message = refusal([QUICK, word])
    assert all(part in message for part in parts), message


def test_the_same_key_twice_is_refused() -> None:
    assert "given twice" in refusal([QUICK, "sizes=tiny", "sizes=xl"])


def test_no_study_lists_what_exists() -> None:
    assert "quickstart" in refusal([])
    assert "did you mean 'quickstart'?" in refusal(["+study=quickstrt"])


@pytest.mark.parametrize(
    "text",
    ["it's", "a&b", "x=y", "gemm#1", "opus-4[1m]", "openai/gpt-4o:free", "größe", "a b", "*", "a,b", "{x"],
)
def test_text_is_taken_literally(text: str) -> None:
    assert check_override("partition.constraint", text, config.Root) == text


def test_awkward_text_survives_composition() -> None:
    root = compose([QUICK, "partition.constraint=it's a&b=c,[d]#é", 'cluster.account="12e4567"']).root
    assert (root.partition.constraint, root.cluster.account) == ("it's a&b=c,[d]#é", "12e4567")


def test_lists_split_at_commas() -> None:
    root = compose([QUICK, "kernels=tsvc_2_s311,ext_*", "setups=*-autotune"]).root
    assert (root.kernels, root.setups) == (["tsvc_2_s311", "ext_*"], ["*-autotune"])


def test_tables_and_member_options_can_be_set() -> None:
    root = compose(
        [QUICK, "judge.timeouts.kernel_s_by_level.3=900", "harnesses.autotune.options.budget=3"]
    ).root
    assert root.judge.timeouts.kernel_s_by_level == {1: 180.0, 2: 300.0, 3: 900.0}
    assert root.harnesses["autotune"].options == {"budget": 3}


@pytest.mark.parametrize(
    ("name", "old", "new", "parts"),
    [
        (
            "judge/default.yaml",
            "early_stop_factor: 2.0",
            "early_stop_facto: 2.0",
            ["judge/default.yaml:11", "'early_stop_factor'"],
        ),
        (
            "judge/default.yaml",
            "compile_s: 75.0",
            "compile_s: soon",
            ["timeouts.compile_s=soon", "not a number"],
        ),
        (
            "judge/default.yaml",
            "name: default",
            "name: 1.10",
            ["judge/default.yaml:2", "name=1.10", 'name: "1.10"'],
        ),
        ("judge/default.yaml", "name: default", "name: other", ["name=other", "name: default"]),
        (
            "partition/local.yaml",
            '"08:00:00"',
            "1:30:00",
            ["partition/local.yaml:4", "time=1:30:00", 'time: "1:30:00"'],
        ),
        ("study/quickstart.yaml", "tag: quickstart", "tag: 12e4567", ["tag=12e4567", "read as a number"]),
        (
            "study/quickstart.yaml",
            "models: [none]",
            "models: [nun]",
            ["study/quickstart.yaml", "did you mean 'none'?"],
        ),
        ("study/quickstart.yaml", "repeat: 1", "repeat: 1\nrepeat: 2", ["repeat=2", "given twice"]),
        (
            "study/quickstart.yaml",
            "sizes: laptop",
            "sizes: laptob",
            ["sizes=laptob", "did you mean 'laptop'?"],
        ),
        ("study/quickstart.yaml", "models: [none]", "models: none", ["models=none", "not a list"]),
        (
            "cluster/local.yaml",
            "exclusive_host: true",
            "exclusive_host: yes",
            ["exclusive_host=yes", "true or false"],
        ),
        (
            "cluster/local.yaml",
            "executor: local",
            "executor: locl",
            ["executor='locl'", "did you mean 'local'?"],
        ),
        (
            "harness/autotune.yaml",
            "needs_model: false",
            "needs_model: [",
            ["harness/autotune.yaml:", "not valid YAML"],
        ),
        ("config.yaml", "- sizes: xl", "- sizs: xl", ["config.yaml", "did you mean 'sizes'?"]),
    ],
)
def test_a_wrong_file_is_refused(
    conf: Path, edit: Callable[[str, str, str], None], name: str, old: str, new: str, parts: list[str]
) -> None:
    edit(name, old, new)
    message = refusal([QUICK], conf)
    assert all(part in message for part in parts), message


def test_an_unused_broken_file_stops_nobody(conf: Path, edit: Callable[[str, str, str], None]) -> None:
    edit("partition/h20.yaml", "gpus: 8", "gpu: 8")
    assert compose([QUICK], conf).root.partition.name == "local"


def test_every_shipped_file_is_valid() -> None:
    for group, kind in config.GROUPS.items():
        for name in members(group):
            path = paths.conf_root() / group / f"{name}.yaml"
            check_file(path, str(path), kind)


def test_the_frozen_text_reads_back_equal(tmp_path: Path) -> None:
    composed = compose([QUICK, 'cluster.account="1.10"', "sizes=tiny"])
    frozen = tmp_path / "config.yaml"
    frozen.write_text(composed.text)
    assert load(frozen) == composed.root
