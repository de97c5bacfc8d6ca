"""What a node job lays out for its judge and its agents."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from experiments import job_layout
from experiments.compose import compose
from hpcagent_bench import config
from hpcagent_bench.cluster.identity import resolve
from hpcagent_bench.corpus import spec


@pytest.fixture(scope="module")
def root() -> config.Root:
    return compose(["+study=quickstart", "sizes=tiny", "study.repeat=2"]).root


SPEC = {
    "setup": {"setup": "q-c-reference", "study": "q", "language": "c", "harness": "reference"},
    "harness": "reference",
    "problems": [{"kernel": "tsvc_2_s311", "slot": 1}, {"kernel": "tsvc_2_s311", "slot": 2}],
}


@pytest.mark.parametrize(
    ("granted", "judge", "agents", "expected"),
    [
        ([0, 1, 8, 9], 2, 2, ((0, 1), (8, 9), False)),
        ([5, 3], 1, 1, ((3,), (5,), False)),
        ([0, 1, 2], 2, 2, ((0,), (1, 2), False)),
        ([0, 1], 4, 4, ((0,), (1,), False)),
        ([7], 1, 1, ((7,), (7,), True)),
        (list(range(8)), 2, 2, ((0, 1), (2, 3), False)),
    ],
)
def test_cores_follow_the_real_mask(
    granted: list[int], judge: int, agents: int, expected: tuple[tuple[int, ...], tuple[int, ...], bool]
) -> None:
    cores = job_layout.allot_cores(granted, judge, agents)
    assert (cores.judge, cores.agents, cores.shared) == expected


def test_tokens_are_filed_by_digest_and_name_their_episode(root: config.Root, tmp_path: Path) -> None:
    served = job_layout.problems(SPEC, root, tmp_path, 100001)
    folder = tmp_path / "fused-tokens"
    assert {p.name for p in folder.iterdir()} == {
        hashlib.sha256(p["token"].encode()).hexdigest() for p in served
    }
    assert [p["episode_id"] for p in served] == ["q-c-reference.n0.p0.w0.s1", "q-c-reference.n0.p1.w0.s2"]
    caller = resolve(folder, f"Bearer {served[1]['token']}")
    assert (caller.episode.label, caller.episode.job, caller.episode.slot) == (
        served[1]["episode_id"],
        100001,
        2,
    )
    assert caller.kernel == "tsvc_2_s311"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_driver_settings_are_what_the_driver_reads(root: config.Root, tmp_path: Path) -> None:
    from hpcagent_agent.driver.settings import load

    served = job_layout.problems(SPEC, root, tmp_path, 1)
    harness = root.harnesses["reference"]
    cores = job_layout.Cores((0,), (1,))
    settings = job_layout.driver_settings(harness, root, tmp_path, served, cores, "http://127.0.0.1:1")
    (tmp_path / "driver.json").write_text(json.dumps(settings))
    read = load(tmp_path / "driver.json")
    assert (read.cpus, read.timeout_s, len(read.problems)) == ([1], 600, 2)
    assert "{workdir}" in read.seal.argv
    assert read.seal.argv[-1] == "--"


def test_an_agent_sees_ranges_and_no_sizes(root: config.Root, tmp_path: Path) -> None:
    job_layout.lay_out_task(tmp_path, spec.load("tsvc_2_s311"), root, "c")
    task = json.loads((tmp_path / "task.json").read_text())
    (low, high) = task["size_ranges"]["LEN_1D"]
    assert 0 < low == high // 2
    assert {p.name for p in tmp_path.iterdir()} == {
        "tsvc_2_s311_numpy.py",
        "tsvc_2_s311.c",
        "binding.json",
        "task.json",
        "README",
    }
    assert "tsvc_2_s311_fp64" in (tmp_path / "tsvc_2_s311.c").read_text()


def test_a_requeued_job_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = job_layout.claim_folder(tmp_path, 7), job_layout.claim_folder(tmp_path, 7)
    assert first == (7, tmp_path / "7")
    assert second == (1_000_000_007, tmp_path / "1000000007")


@pytest.mark.parametrize(
    ("language", "sources"), [("c", {".c"}), ("cpp", {".c", ".cpp"}), ("fortran", {".c", ".f90"})]
)
def test_an_agent_gets_the_reference_in_its_own_language_too(
    root: config.Root, tmp_path: Path, language: str, sources: set[str]
) -> None:
    job_layout.lay_out_task(tmp_path, spec.load("tsvc_2_s311"), root, language)
    laid = {path.suffix for path in tmp_path.glob("tsvc_2_s311.*")}
    assert laid == sources
    assert all(f"tsvc_2_s311{suffix}" in (tmp_path / "README").read_text() for suffix in sources)
