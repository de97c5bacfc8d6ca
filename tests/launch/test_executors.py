"""What is handed to submitit, and the batch script it makes of that."""

from __future__ import annotations

import copy
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from submitit.slurm.slurm import _make_sbatch_string

from experiments import executors
from experiments.compose import compose
from hpcagent_bench import config
from hpcagent_bench.errors import UserError


@pytest.fixture(scope="module")
def composed() -> config.Root:
    return compose(["+study=quickstart", "cluster=slurm"]).root


@pytest.fixture
def root(composed: config.Root) -> config.Root:
    return copy.deepcopy(composed)


def directives(root: config.Root, name: str = "n", code: Path = Path("/code")) -> dict[str, str]:
    """The #SBATCH lines of the script, as a shell would read their values."""
    given: dict[str, Any] = executors.slurm_parameters(
        root.cluster, root.partition, name, "t0k", code, Path("/r")
    )
    script = _make_sbatch_string(command="true", folder=Path("/logs"), **given)
    found = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH --"):
            option, _, value = line.removeprefix("#SBATCH --").partition("=")
            found[option] = "".join(shlex.split(value))
    return found


def test_what_is_unset_is_absent(root: config.Root) -> None:
    root.partition.exclusive = False
    found = directives(root)
    absent = {"exclusive", "account", "qos", "nodelist", "exclude", "constraint", "mem", "gres", "wckey"}
    assert not absent & set(found)
    assert not {"False", "None"} & set(found.values())
    assert {option for option, value in found.items() if not value} == {"no-requeue"}


def test_what_is_set_is_there(root: config.Root) -> None:
    root.partition.mem, root.cluster.account = "64G", "a b"
    root.partition.partition = "a,b"
    found = directives(root)
    assert (found["mem"], found["account"], found["partition"]) == ("64G", "a b", "a,b")
    assert (found["time"], found["cpus-per-task"], found["exclusive"]) == ("720", "112", "")
    assert (found["nodes"], found["ntasks-per-node"], found["comment"]) == ("1", "1", "hpcagent-bench:t0k")


@pytest.mark.parametrize(
    ("form", "kind", "option", "value"),
    [
        ("gres", "h20", "gres", "gpu:h20:8"),
        ("gres", "", "gres", "gpu:8"),
        ("gpus-per-node", "h20", "gpus-per-node", "h20:8"),
        ("gpus-per-node", "", "gpus-per-node", "8"),
    ],
)
def test_gpus_in_either_form(root: config.Root, form: str, kind: str, option: str, value: str) -> None:
    root.partition.gpus, root.partition.gpu_form, root.partition.gpu_type = 8, form, kind
    found = directives(root)
    assert found[option] == value
    assert len({"gres", "gpus-per-node"} & set(found)) == 1


@pytest.mark.parametrize("setup", ["gemm v2 (fast)", "a\n#SBATCH --x", "my-hetjob-0", "x" * 300, "it's"])
def test_job_names_are_clean_and_end_in_the_token(setup: str) -> None:
    name = executors.job_name(setup, 3, "abcd1234")
    assert name.endswith(".w3.abcd1234")
    assert name == shlex.quote(name)
    assert "-hetjob" not in name
    assert len(name) < 128


def test_the_job_imports_the_frozen_code_only(root: config.Root) -> None:
    root.cluster.setup = ["module load gcc"]
    given = executors.slurm_parameters(root.cluster, root.partition, "n", "t", Path("/a b/c"), Path("/r"))
    lines = given["setup"]
    assert lines == [
        "module load gcc",
        "cd /r",
        "export PYTHONPATH='/a b/c:/a b/c/agent'",
        "export PYTHONSAFEPATH=1",
    ]


def test_leftovers_of_a_surrounding_job_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("SLURM_CPU_BIND", "SLURM_JOB_ID", "SBATCH_PARTITION", "SLURM_CONF", "HOME_OF_MINE"):
        monkeypatch.setenv(key, "kept")
    before = dict(os.environ)
    with executors.job_environment(Path("/code")):
        assert not {"SLURM_CPU_BIND", "SLURM_JOB_ID", "SBATCH_PARTITION"} & set(os.environ)
        assert os.environ["SLURM_CONF"] == os.environ["HOME_OF_MINE"] == "kept"
        assert os.environ["PYTHONPATH"] == "/code:/code/agent"
    assert dict(os.environ) == before


def test_a_missing_cluster_says_what_to_start(root: config.Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    root.cluster.name, root.cluster.slurm_conf = "devcluster", "/nowhere/slurm.conf"
    with pytest.raises(UserError, match="devcluster up"):
        executors.use_slurm_conf(root.cluster)


def test_slurm_without_its_commands_is_refused(root: config.Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="sbatch is not found"):
        executors.use_slurm_conf(root.cluster)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sbatch: error: Invalid generic resource (gres) specification", "partition.gpu_form"),
        ("sbatch: error: invalid partition specified: spr", "partition.partition"),
        ("error: Requested time limit is invalid", "partition.time"),
        ("Invalid account or account/partition combination specified", "cluster.account"),
        ("something else", "conf/cluster"),
    ],
)
def test_a_refusal_names_the_key_to_change(text: str, key: str) -> None:
    assert key in executors.explain_refusal(text)
