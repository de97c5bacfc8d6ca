"""submitit executors made from cluster and partition settings, with submitit's traps kept shut."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import submitit

from experiments.study import slug
from experiments.waves import seconds
from hpcagent_bench import config
from hpcagent_bench.errors import UserError

LOCAL_MINUTES = 14 * 24 * 60
"""submitit's own limit of a local job: out of the way, since a job keeps its time limit itself."""

_INHERITED = ("SLURM_", "SBATCH_", "SRUN_", "SUBMITIT_", "PMI_", "PMIX_")

_REFUSALS = (
    ("gres", "partition.gpu_form, partition.gpu_type or partition.gpus"),
    ("gpus", "partition.gpu_form, partition.gpu_type or partition.gpus"),
    ("account", "cluster.account"),
    ("qos", "cluster.qos"),
    ("partition", "partition.partition"),
    ("time limit", "partition.time"),
    ("memory", "partition.mem"),
    ("node configuration", "partition.cores, partition.mem or partition.constraint"),
    ("cpu", "partition.cores"),
)


def job_name(setup: str, wave: int, token: str) -> str:
    """A name that no shell, no sbatch and no site tool misreads; the token makes it findable."""
    return f"{slug(setup).replace('hetjob', 'het-job')[:80]}.w{wave}.{token}"


def slurm_parameters(
    cluster: config.Cluster, partition: config.Partition, name: str, token: str, code: Path, cwd: Path
) -> dict[str, Any]:
    """submitit's parameters of one array; what is unset is absent, never False, None or empty."""
    gpus: dict[str, Any] = {}
    if partition.gpus:
        request = f"{partition.gpu_type}:{partition.gpus}" if partition.gpu_type else str(partition.gpus)
        gres = partition.gpu_form == "gres"
        gpus = {"gres": f"gpu:{request}"} if gres else {"gpus_per_node": request}
    wanted: dict[str, Any] = {
        "job_name": name,
        "comment": f"hpcagent-bench:{token}",
        "partition": partition.partition,
        "time": -(-seconds(partition.time) // 60),
        "nodes": 1,
        "ntasks_per_node": 1,
        "cpus_per_task": partition.cores,
        "mem": partition.mem,
        "mem_per_cpu": partition.mem_per_cpu,
        "constraint": partition.constraint,
        "nodelist": partition.nodelist,
        "exclude": partition.exclude,
        "exclusive": partition.exclusive,
        "account": cluster.account,
        "qos": cluster.qos,
        **gpus,
    }
    given = {key: value for key, value in wanted.items() if value not in (None, "", False)}
    # A step gets one core unless told, and an inherited binding must not narrow what was granted.
    srun = [f"--cpus-per-task={partition.cores}", "--cpu-bind=none"]
    return {
        **given,
        "wckey": None,  # submitit would send one of its own, which sites that track them refuse
        "signal_delay_s": cluster.signal_delay_s,
        "array_parallelism": cluster.max_running,
        "setup": [*cluster.setup, *job_shell(code, cwd)],
        "use_srun": cluster.use_srun,
        "srun_args": srun if cluster.use_srun else None,
        "additional_parameters": {"no-requeue": True, **{k: v for k, v in cluster.sbatch.items() if v}},
    }


def job_shell(code: Path, cwd: Path) -> list[str]:
    """Shell lines that make a job import the frozen code, from a folder that holds no other."""
    return [
        f"cd {shlex.quote(str(cwd))}",
        f"export PYTHONPATH={shlex.quote(python_path(code))}",
        "export PYTHONSAFEPATH=1",
    ]


def python_path(code: Path) -> str:
    """PYTHONPATH of a job: the frozen packages and what runs beside an agent."""
    return f"{code}{os.pathsep}{code / 'agent'}"


@contextlib.contextmanager
def job_environment(code: Path) -> Iterator[None]:
    """The environment jobs are submitted from: the frozen code first, no leftovers of a surrounding job.

    SLURM_CONF stays: some sites find their controller by it alone. An interrupt typed at the launcher, or its
    terminal closing, must not reach the jobs, so those started here ignore both until they say otherwise.
    """
    saved = dict(os.environ)
    for key in saved:
        if key.startswith(_INHERITED) and key != "SLURM_CONF":
            del os.environ[key]
    os.environ.update(PYTHONPATH=python_path(code), PYTHONSAFEPATH="1")
    before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.environ.clear()
        os.environ.update(saved)


@contextlib.contextmanager
def apart(log: Path) -> Iterator[None]:
    """Processes started meanwhile write to ``log`` and read nothing.

    submitit's local jobs inherit the launcher's streams: whoever reads its output through a pipe would wait
    until the last job ends.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(number) for number in range(3)]
    try:
        with log.open("ab") as handle, Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(handle.fileno(), 1)
            os.dup2(handle.fileno(), 2)
            yield
    finally:
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)


def use_slurm_conf(cluster: config.Cluster) -> None:
    """Point Slurm's commands at the cluster's own configuration, unless the environment names one."""
    if cluster.executor != "slurm":
        return
    path = slurm_conf_of(cluster)
    if path and not os.environ.get("SLURM_CONF"):
        if not path.is_file():
            hint = (
                "start it with: hpcagent-bench devcluster up"
                if cluster.name == "devcluster"
                else "mend the path"
            )
            raise UserError(f"cluster {cluster.name}: {path} does not exist", hint)
        os.environ["SLURM_CONF"] = str(path)
    missing = [tool for tool in ("sbatch", "srun", "squeue", "scontrol") if shutil.which(tool) is None]
    if missing:
        raise UserError(
            f"cluster={cluster.name}: {missing[0]} is not found", "load Slurm, or use cluster=local"
        )


def slurm_conf_of(cluster: config.Cluster) -> Path | None:
    """The cluster's own slurm.conf: the configured one, or where the development cluster puts its."""
    if cluster.slurm_conf or cluster.name != "devcluster":
        return Path(cluster.slurm_conf) if cluster.slurm_conf else None
    from slurm.devcluster import layout

    return layout.slurm_conf(layout.default_root())


def make(
    cluster: config.Cluster,
    partition: config.Partition,
    folder: Path,
    name: str,
    token: str,
    code: Path,
    cwd: Path,
) -> submitit.Executor:
    """The executor that submits one array."""
    if cluster.executor == "local":
        local = submitit.LocalExecutor(folder=folder)
        local.update_parameters(timeout_min=LOCAL_MINUTES, stderr_to_stdout=True)
        return local
    slurm = submitit.SlurmExecutor(folder=folder)
    slurm.update_parameters(**slurm_parameters(cluster, partition, name, token, code, cwd))
    return slurm


def explain_refusal(text: str) -> str:
    """Which of our keys the scheduler's complaint is about."""
    low = text.lower()
    for word, key in _REFUSALS:
        if word in low:
            return f"change {key}"
    return "see conf/cluster and conf/partition"
