"""The one-machine Slurm: it is a real one, heals, refuses nonsense, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import submitit

from hpcagent_bench.errors import UserError
from slurm import devcluster as product
from slurm.devcluster import daemons, layout, system

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_installed")]
Eventually = Callable[..., None]


def sh(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout.strip()


def batch(script: str, *options: str) -> str:
    return sh("sbatch", "--parsable", "--output=out-%j.txt", *options, "--wrap", script)


def sacct(job: str, column: str) -> str:
    lines = sh("sacct", "-X", "-n", "-P", "-j", job, "-o", column).splitlines()
    return lines[0] if lines else ""


def pgrep(pattern: str) -> list[str]:
    done = subprocess.run(["pgrep", "-x", "-f", pattern], capture_output=True, text=True, check=False)
    return done.stdout.split()


def marks(root: Path) -> list[str]:
    """Every process and file on this host that still names the root, read without the product's help."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(root).encode() in environment and process.name != str(os.getpid()):
            found.append(process.name)
    sides = [*layout.side_folders(root).values(), root]
    return found + [str(folder) for folder in sides if folder.exists()]


def test_all_nodes_are_idle_and_claim_what_the_shape_says(devcluster: product.Status) -> None:
    assert devcluster.up
    assert product.status(devcluster.root).up
    rows = sh("sinfo", "-h", "-N", "-o", "%N %P %c %G %t").splitlines()
    spr = [f"spr-0{n} spr* 8 (null) idle" for n in range(1, 5)]
    assert sorted(rows) == [f"h20-0{n} h20 8 gpu:h20:8 idle" for n in (1, 2)] + spr
    assert "MaxArraySize            = 1001" in sh("scontrol", "show", "config")


def test_a_batch_job_runs_and_is_accounted_with_its_comment(
    devcluster: product.Status, eventually: Eventually
) -> None:
    job = batch("echo on $SLURMD_NODENAME", "--comment=it's a token", "--wait")
    assert Path(f"out-{job}.txt").read_text() == "on spr-01\n"
    eventually(lambda: sacct(job, "State,ExitCode,Partition,Comment") == "COMPLETED|0:0|spr|it's a token")


def test_a_failing_job_is_accounted_as_failed(devcluster: product.Status, eventually: Eventually) -> None:
    done = subprocess.run(
        ["sbatch", "--parsable", "--wait", "-o/dev/null", "--wrap", "exit 7"], capture_output=True
    )
    assert done.returncode == 7
    eventually(lambda: sacct(done.stdout.decode().strip(), "State,ExitCode") == "FAILED|7:0")


def test_a_gpu_job_sees_the_gpus_it_asked_for_and_no_others(devcluster: product.Status) -> None:
    show = "echo $CUDA_VISIBLE_DEVICES/$SLURM_JOB_GPUS; "
    hold = "for i in $(seq 300); do [ -e second ] && exit; sleep 0.1; done; exit 1"
    first = batch(show + hold, "--partition=h20", "--gres=gpu:h20:5", "--nodelist=h20-01")
    second = batch(show + "touch second", "--partition=h20", "--gres=gpu:3", "--nodelist=h20-01", "--wait")
    assert Path(f"out-{first}.txt").read_text() == "0,1,2,3,4/0,1,2,3,4\n"
    assert Path(f"out-{second}.txt").read_text() == "5,6,7/5,6,7\n"


def test_more_gpus_than_a_node_has_are_refused(devcluster: product.Status) -> None:
    argv = ["sbatch", "--partition=h20", "--gres=gpu:h20:9", "--wrap", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Requested node configuration is not available" in done.stderr


def test_an_array_goes_through_submitit(devcluster: product.Status, tmp_path: Path) -> None:
    executor = submitit.SlurmExecutor(folder=tmp_path / "jobs", python=sys.executable)
    executor.update_parameters(partition="spr", time=5, array_parallelism=6, mem="500M")
    jobs = executor.map_array(pow, [2, 3, 4], [10, 2, 3])
    assert [job.result() for job in jobs] == [1024, 9, 64]
    array = jobs[0].job_id.split("_")[0]
    assert [job.job_id for job in jobs] == [f"{array}_{index}" for index in range(3)]


def test_scancel_ends_a_job_and_its_children(devcluster: product.Status, eventually: Eventually) -> None:
    job = batch("sleep 7654 & echo $! > child; wait")
    eventually(lambda: Path("child").exists() and Path("child").read_text() != "")
    child = system.identify(int(Path("child").read_text()))
    assert child is not None
    sh("scancel", job)
    eventually(lambda: not system.alive(child))
    eventually(lambda: sacct(job, "State").startswith("CANCELLED"))


def test_a_node_set_down_loses_its_job_and_can_be_resumed(
    devcluster: product.Status, eventually: Eventually
) -> None:
    job = batch("sleep 7655", "--nodelist=spr-04", "--no-requeue")
    eventually(lambda: sh("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING")
    sh("scontrol", "update", "NodeName=spr-04", "State=DOWN", "Reason=test")
    eventually(lambda: sacct(job, "State") == "NODE_FAIL")
    downed = product.up(devcluster.root)
    assert (downed.nodes["spr-04"], downed.up) == ("down", False)
    sh("scontrol", "update", "NodeName=spr-04", "State=RESUME")
    eventually(lambda: product.status(devcluster.root).nodes["spr-04"] == "idle")


@pytest.mark.parametrize("daemon", ["mariadbd", "slurmdbd", "slurmctld", "munged", "slurmd-spr-02"])
def test_up_starts_a_daemon_that_died_and_no_other(
    devcluster: product.Status, daemon: str, eventually: Eventually
) -> None:
    before = daemons.recorded(devcluster.root)
    os.kill(before[daemon].pid, signal.SIGKILL)
    eventually(lambda: not product.status(devcluster.root).daemons[daemon])
    assert product.up(devcluster.root).up
    after = daemons.recorded(devcluster.root)
    assert {name for name in after if after[name] != before[name]} == {daemon}


def test_up_again_changes_nothing_and_another_shape_is_refused(devcluster: product.Status) -> None:
    before = daemons.recorded(devcluster.root)
    assert product.up(devcluster.root, product.Shape()).up
    assert daemons.recorded(devcluster.root) == before
    with pytest.raises(UserError, match="up with other nodes; first: hpcagent-bench devcluster down"):
        product.up(devcluster.root, product.Shape(spr=2))


def test_down_twice_leaves_no_process_and_no_file_even_of_jobs_that_hide(
    empty_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, eventually: Eventually
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(product.slurm_conf(empty_root)))
    for _ in range(2):
        state = product.up(empty_root, product.Shape(spr=1, h20=0))
        assert list(state.nodes) == ["spr-01"]
        batch("trap '' TERM; setsid nohup sleep 7656 & (env -i sleep 7657); touch ended")
        eventually(lambda: len(pgrep("sleep 765[67]")) == 2)
        assert product.down(empty_root)
        assert pgrep("sleep 765[67]") == []
        assert marks(empty_root) == []
    assert product.down(empty_root) is False


def test_a_shell_that_exported_the_configuration_survives_down(empty_root: Path) -> None:
    environment = {**os.environ, "SLURM_CONF": str(product.slurm_conf(empty_root)), "SLURM_JOB_ID": "1"}
    with subprocess.Popen(["sleep", "600"], env=environment) as shell:
        product.up(empty_root, product.Shape(spr=1, h20=0))
        product.down(empty_root)
        assert shell.poll() is None
        shell.kill()


def test_a_daemon_that_fails_is_named_with_its_log_and_all_is_cleaned_up(
    empty_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "slurmctld"
    broken.write_text("#!/bin/sh\nsleep 0.2; echo the disk is on fire; exit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(product.DevclusterError, match="slurmctld: ended; its log ends:\nthe disk is on fire"):
        product.up(empty_root)
    assert marks(empty_root) == []


def test_down_touches_no_folder_that_is_not_a_cluster(empty_root: Path) -> None:
    empty_root.mkdir()
    (empty_root / "thesis.tex").write_text("years of work")
    for verb in (product.up, product.down):
        with pytest.raises(UserError, match="--root"):
            verb(empty_root)
    assert (empty_root / "thesis.tex").read_text() == "years of work"
    (empty_root / "thesis.tex").unlink()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["up", "--spr", "0"], "spr=0; give a number from 1 to 99"),
        (["up", "--root", "/tmp/" + 70 * "x"], "75 characters; give one of at most 60"),
        (["down", "--root", "/etc/passwd"], "is not a folder"),
        (["status", "--root", "/tmp/a b"], "give a plain path"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], says: str) -> None:
    argv = [sys.executable, "-m", "hpcagent_bench.cli", "devcluster", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_status_for_scripts(devcluster: product.Status) -> None:
    base = [sys.executable, "-m", "hpcagent_bench.cli", "devcluster", "status", "--json", "--root"]
    up = subprocess.run([*base, str(devcluster.root)], capture_output=True, check=False)
    assert (up.returncode, json.loads(up.stdout)["slurm_conf"]) == (0, str(devcluster.slurm_conf))
    gone = subprocess.run([*base, "/tmp/no-such-cluster"], capture_output=True, check=False)
    assert (gone.returncode, json.loads(gone.stdout)["daemons"]) == (1, {})


def test_missing_packages_are_named_with_the_line_that_installs_them(
    empty_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "missing_programs", lambda: ["slurmdbd"])
    with pytest.raises(
        UserError, match=r"slurmdbd is not installed; type: apt-get install .* slurmdbd .*mariadb"
    ):
        product.up(empty_root)
    assert not empty_root.exists()
