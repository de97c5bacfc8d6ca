"""The daemons of a development cluster: how each is started and when it is ready."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from slurm.devcluster import system
from slurm.devcluster.layout import Layout
from slurm.devcluster.system import DevclusterError, Process

# Commits reach the kernel, not the disk: they survive a killed mariadbd, which is all that is asked for. With
# no dirty pages allowed, the header of the new table space is written within a second or so; without it a
# killed server can't start again.
_MARIADB_OPTIONS = (
    "--skip-networking",
    "--skip-grant-tables",
    "--skip-log-bin",
    "--performance-schema=off",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-max-dirty-pages-pct=0",
    "--innodb-file-per-table=0",
    "--innodb-data-file-path=ibdata1:4M:autoextend",
    "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
    "--innodb-autoextend-increment=4",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=900",
)


@dataclass(frozen=True)
class Daemon:
    """One daemon: its command line, what its environment adds, and how to see that it is ready."""

    name: str
    argv: tuple[str, ...]
    ready: Callable[[], bool]
    environment: dict[str, str] = field(default_factory=dict)


def stages(layout: Layout) -> list[list[Daemon]]:
    """The daemons in starting order; those of one stage start together, each stage needs the one before."""
    return [
        [_munged(layout), _mariadbd(layout)],
        [_slurmdbd(layout)],
        [_slurmctld(layout)],
        [_slurmd(layout, node) for node in layout.shape.nodes()],
    ]


def _munged(layout: Layout) -> Daemon:
    folder = layout.root / "munge"
    options = {
        "--key-file": folder / "key",
        "--socket": layout.munge_socket,
        "--pid-file": folder / "pid",
        "--seed-file": folder / "seed",
        "--log-file": layout.log("munged"),
        "--num-threads": 4,
    }
    argv = ("munged", "--foreground", *(f"{name}={value}" for name, value in options.items()))
    return Daemon("munged", argv, lambda: system.connectable(layout.munge_socket))


def _mariadbd(layout: Layout) -> Daemon:
    options = {
        "--datadir": layout.database,
        "--tmpdir": layout.database,
        "--socket": layout.database_socket,
        "--pid-file": layout.database / "pid",
        "--init-file": layout.root / "etc" / "database.sql",
    }
    user = ("--user=root",) if os.geteuid() == 0 else ()
    argv = ("mariadbd", "--no-defaults", *user, *_MARIADB_OPTIONS, *(f"{k}={v}" for k, v in options.items()))
    return Daemon("mariadbd", argv, lambda: system.connectable(layout.database_socket))


def _slurmdbd(layout: Layout) -> Daemon:
    # Slurm's MySQL client has no setting for the socket; its library reads this variable.
    environment = {"MYSQL_UNIX_PORT": str(layout.database_socket)}
    return Daemon(
        "slurmdbd", ("slurmdbd", "-D"), lambda: system.listening(layout.accounting_port), environment
    )


def _slurmctld(layout: Layout) -> Daemon:
    return Daemon("slurmctld", ("slurmctld", "-D"), lambda: system.listening(layout.controller_port))


def _slurmd(layout: Layout, node: str) -> Daemon:
    port = layout.node_ports[node]
    return Daemon(f"slurmd-{node}", ("slurmd", "-D", "-N", node), lambda: system.listening(port))


def _record(layout_root: Path) -> Path:
    return layout_root / "processes.jsonl"


def recorded(root: Path) -> dict[str, Process]:
    """The last process started for each daemon, by the daemon's name."""
    found: dict[str, Process] = {}
    try:
        lines = _record(root).read_text().splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        row = json.loads(line)
        found[row["daemon"]] = Process(row["pid"], row["start"])
    return found


def start(layout: Layout, daemon: Daemon) -> Process:
    """Start a daemon in a session of its own and record it; its output goes to ``log/<name>.out``.

    Raises:
        DevclusterError: it ended at once.
    """
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "MYSQL_"))},
        **daemon.environment,
        "SLURM_CONF": str(layout.slurm_conf),
        system.MARK: str(layout.root),
    }
    executable = system.program(daemon.argv[0]) or daemon.argv[0]
    with output_log(layout, daemon).open("ab") as output:
        child = subprocess.Popen(
            [executable, *daemon.argv[1:]],
            env=environment,
            cwd=layout.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = system.identify(child.pid)
    if process is None:
        raise failure(layout, daemon, f"ended at once with status {child.wait()}")
    # Appending needs no rewrite, so a record survives whatever interrupts the next start.
    with _record(layout.root).open("a") as record:
        record.write(json.dumps({"daemon": daemon.name, "pid": process.pid, "start": process.start}) + "\n")
    # Detached on purpose: it outlives us, and its id, not this object, is what down works with.
    child.returncode = 0
    return process


def output_log(layout: Layout, daemon: Daemon) -> Path:
    """Where a daemon's own output goes; Slurm's daemons repeat their log there."""
    return layout.root / "log" / f"{daemon.name}.out"


def failure(layout: Layout, daemon: Daemon, what: str) -> DevclusterError:
    """The error that names the daemon and shows the end of its log."""
    log = output_log(layout, daemon)
    return DevclusterError(f"{daemon.name}: {what}; its log ends:\n{system.tail(log)}")
