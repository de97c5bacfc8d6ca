"""Take a development cluster down and leave nothing of it behind."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from hpcagent_bench.errors import UserError
from slurm.devcluster import daemons, layout, system
from slurm.devcluster.system import DevclusterError

JOB_GRACE_SECONDS = 2.0
KILL_SECONDS = 10.0


def down(root: Path | None = None) -> bool:
    """End every process of the cluster under ``root``, its running jobs included, and remove its files.

    Like a power cut: jobs get SIGTERM and two seconds, daemons are killed, since nothing they would save is
    kept. Only processes that the cluster started are touched.

    Returns:
        Whether there was a cluster.

    Raises:
        UserError: ``root`` is a folder that holds no cluster, or belongs to another user.
        DevclusterError: a process survives SIGKILL.
    """
    where = layout.checked_root(root or layout.default_root())
    if not where.exists():
        erase(where)
        return False
    known = (where / "layout.json").exists() or bool(daemons.recorded(where))
    if not known and any(where.iterdir()):
        raise UserError(f"--root {where}: holds no cluster", "nothing was removed; look at the path")
    with system.locked(where):
        erase(where)
    return known


def erase(where: Path, keep_root: bool = False) -> None:
    """End the processes and remove the files of whatever cluster there is; needs the lock on ``where``."""
    end_processes(where)
    for folder in layout.side_folders(where).values():
        shutil.rmtree(folder, ignore_errors=True)
    if not where.exists():
        return
    if keep_root:
        for entry in where.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    else:
        shutil.rmtree(where)


def end_processes(where: Path) -> None:
    """Kill the daemons, end the jobs, and look again until a look finds nothing.

    Raises:
        DevclusterError: a process survives.
    """
    started, jobs = system.processes_of(where, layout.slurm_conf(where))
    started |= set(daemons.recorded(where).values())
    for process in started:
        system.send(process, signal.SIGKILL)
    for process in jobs:
        system.send(process, signal.SIGTERM)
    system.wait_until(lambda: not any(map(system.alive, jobs)), JOB_GRACE_SECONDS)

    def gone() -> bool:
        # Kept from the first look too: a child whose parent died no longer descends from anything of ours.
        new = system.processes_of(where, layout.slurm_conf(where))
        left = {process for process in started.union(jobs, *new) if system.alive(process)}
        for process in left:
            system.send(process, signal.SIGKILL)
        return not left

    if not system.wait_until(gone, KILL_SECONDS):
        left = sorted(process.pid for process in started | jobs if system.alive(process))
        raise DevclusterError(f"processes {left} of {where} survive SIGKILL")
