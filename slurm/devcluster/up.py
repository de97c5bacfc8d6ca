"""Bring a development cluster up."""

from __future__ import annotations

import os
import pwd
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError
from slurm.devcluster import daemons, settings, system
from slurm.devcluster import layout as layouts
from slurm.devcluster.daemons import Daemon
from slurm.devcluster.down import erase
from slurm.devcluster.layout import Layout, Shape
from slurm.devcluster.status import Status, answers, status
from slurm.devcluster.system import DevclusterError

READY_SECONDS = 60.0


def _silent(_: str) -> None:
    pass


def up(root: Path | None = None, shape: Shape | None = None, say: Callable[[str], None] = _silent) -> Status:
    """Bring up a cluster under ``root`` and wait until all nodes are idle and sacct answers.

    A cluster that is up stays as it is; daemons of it that died are started again.

    Args:
        root: folder of the cluster, at most 60 characters; None is ``default_root()``.
        shape: nodes and what they claim; None is four ``spr`` and two ``h20``, or what is up already.
        say: gets each line of progress.

    Raises:
        UserError: packages missing, a bad root or shape, or a cluster of another shape is up there.
        DevclusterError: a daemon failed; names it, with the end of its log. What was new is cleaned up.
    """
    system.require_programs()
    where = layouts.checked_root(root or layouts.default_root())
    if shape is not None:
        shape.check()
    with system.locked(where):
        known = layouts.read(where)
        if known is None:
            return _fresh(where, shape or Shape(), say)
        if shape is not None and shape != known.shape:
            raise UserError(
                f"devcluster: {where} is up with other nodes", "first: hpcagent-bench devcluster down"
            )
        return _bring_up(known, say)


def _fresh(where: Path, shape: Shape, say: Callable[[str], None]) -> Status:
    leftovers = [entry.name for entry in where.iterdir()]
    if leftovers:
        raise UserError(f"--root {where}: holds {leftovers[0]}, not a cluster", "give an empty or new folder")
    erase(where, keep_root=True)
    try:
        layout = layouts.plan(where, shape)
        layouts.write(layout)
        return _bring_up(layout, say)
    except BaseException:
        erase(where)
        raise


def _prepare(layout: Layout) -> None:
    """Make what is missing of folders, configuration, munge key and device files."""
    for folder in layout.folders():
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    layout.database.chmod(0o700)
    user = pwd.getpwuid(os.geteuid()).pw_name
    etc = layout.root / "etc"
    _put(etc / "slurm.conf", settings.slurm_conf(layout, user).encode())
    _put(etc / "gres.conf", settings.gres_conf(layout).encode())
    _put(etc / "slurmdbd.conf", settings.slurmdbd_conf(layout, user).encode(), mode=0o600)
    _put(etc / "database.sql", settings.database_sql().encode())
    _put(layout.root / "munge" / "key", secrets.token_bytes(128), mode=0o600)
    for number in range(layout.shape.gpus):
        device = layout.root / "dev" / f"nvidia{number}"
        # Slurm only asks whether it is a character device, so nobody needs the right to make one.
        if not device.is_symlink():
            device.symlink_to("/dev/null")


def _put(path: Path, content: bytes, mode: int = 0o644) -> None:
    if not path.exists():
        paths.write_atomic(path, content, mode)


def _bring_up(layout: Layout, say: Callable[[str], None]) -> Status:
    """Start what does not run, stage by stage, and wait until the nodes started here answer."""
    began = time.monotonic()
    _prepare(layout)
    running = daemons.recorded(layout.root)
    started: set[str] = set()
    for stage in daemons.stages(layout):
        missing = [d for d in stage if d.name not in running or not system.alive(running[d.name])]
        processes = {daemon.name: daemons.start(layout, daemon) for daemon in missing}
        for daemon in missing:
            _await(layout, daemon, processes[daemon.name])
        if missing:
            names = " ".join(daemon.name for daemon in missing)
            say(f"{time.monotonic() - began:5.1f} s  {names}")
        started |= set(processes)
    # A controller, or one that could talk to nobody for want of munge, has to hear from every node again.
    nodes = [n for n in layout.shape.nodes() if started & {f"slurmd-{n}", "slurmctld", "munged"}]
    state = _await_nodes(layout, nodes)
    if started:
        say(f"{time.monotonic() - began:5.1f} s  {len(state.nodes)} nodes, accounting")
    return state


def _await(layout: Layout, daemon: Daemon, process: system.Process) -> None:
    if not system.wait_until(lambda: daemon.ready() or not system.alive(process), READY_SECONDS):
        raise daemons.failure(layout, daemon, f"not ready after {READY_SECONDS:.0f} s")
    if not system.alive(process):
        raise daemons.failure(layout, daemon, "ended")


def _await_nodes(layout: Layout, nodes: list[str]) -> Status:
    """Wait until ``nodes`` answer and sacct does. Others may be down because somebody set them so."""
    state = status(layout.root)

    def answering() -> bool:
        nonlocal state
        state = status(layout.root)
        return state.accounting and all(answers(state.nodes.get(node, "unk")) for node in nodes)

    if system.wait_until(answering, READY_SECONDS, step=0.05):
        return state
    culprit = "slurmctld" if state.accounting else "slurmdbd"
    lacking = [node for node in nodes if not answers(state.nodes.get(node, "unk"))]
    what = f"nodes {' '.join(lacking)} do not answer" if state.accounting else "sacct does not answer"
    raise DevclusterError(f"{culprit}: {what}; its log ends:\n{system.tail(layout.log(culprit))}")
