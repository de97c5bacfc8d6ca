"""The host below a development cluster: programs, processes, ports and the lock on its folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench.errors import UserError

PACKAGES = ("slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "mariadb-server-core")
APT_LINE = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "sbatch": "slurm-client",
    "sinfo": "slurm-client",
    "sacct": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server-core",
}
MARK = "HPCAGENT_DEVCLUSTER"
_TCP_LISTEN = "0A"


class DevclusterError(Exception):
    """A daemon did not do what it should; the message names it and ends with the tail of its log."""


@dataclass(frozen=True)
class Process:
    """A process: its id and its start in clock ticks since boot, so that a reused id is another process."""

    pid: int
    start: int


def program(name: str) -> str | None:
    """Full path of a program, also from the sbin folders that are not on everybody's PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin")


def missing_programs() -> list[str]:
    """The programs a cluster needs and this host lacks."""
    return [name for name in PROGRAMS if program(name) is None]


def require_programs() -> None:
    """Refuse to start without the system packages.

    Raises:
        UserError: names the first missing program and the line that installs all of them.
    """
    missing = missing_programs()
    if missing:
        raise UserError(f"devcluster: {missing[0]} is not installed", f"type: {APT_LINE}")


def _stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on, None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def identify(pid: int) -> Process | None:
    """The living process of this id; a zombie counts as gone."""
    fields = _stat_fields(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return Process(pid, int(fields[19]))


def alive(process: Process) -> bool:
    """Whether it still runs. One that has ended and is a child of this very process is reaped on the way."""
    fields = _stat_fields(process.pid)
    if fields is None or int(fields[19]) != process.start:
        return False
    if fields[0] == "Z":
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return fields[0] not in "ZX"


def send(process: Process, number: signal.Signals) -> None:
    """Signal it if it is still the same process."""
    if alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def wait_until(condition: Callable[[], bool], seconds: float, step: float = 0.02) -> bool:
    """Poll ``condition`` until it holds (True) or the time is over (False)."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def _environment(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def processes_of(root: Path, slurm_conf: Path) -> tuple[set[Process], set[Process]]:
    """The living processes of the cluster under ``root``: its daemons with their job steps, and its jobs.

    Daemons and job steps carry the mark in their environment; a job's processes carry the configuration
    and the node that runs them, or descend from ones that do. A shell that merely exported SLURM_CONF has no
    node and is not among them.
    """
    mark = f"{MARK}={root}".encode()
    configured = f"SLURM_CONF={slurm_conf}".encode()
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    jobs: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or (fields := _stat_fields(int(entry.name))) is None:
            continue
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        environment = _environment(pid)
        on_a_node = any(item.startswith(b"SLURMD_NODENAME=") for item in environment)
        if mark in environment:
            daemons.add(pid)
        elif configured in environment and on_a_node:
            jobs.add(pid)
    jobs = _descendants(daemons | jobs, parents) - daemons
    return _identified(daemons), _identified(jobs)


def _identified(pids: set[int]) -> set[Process]:
    return {process for pid in pids - {os.getpid()} if (process := identify(pid)) is not None}


def _descendants(roots: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    known = set(roots)
    while new := {pid for pid, parent in parents.items() if parent in known and pid not in known}:
        known |= new
    return known


def free_ports(count: int, address: str) -> list[int]:
    """``count`` ports nothing listens on, below the range the kernel gives to outgoing connections."""
    ports: list[int] = []
    for port in random.sample(range(20_000, 32_000), 4000):
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise DevclusterError(f"no {count} free ports on {address}")


def listening(port: int) -> bool:
    """Whether a TCP socket listens on the port; asking the kernel leaves no broken connection in a log."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            if any(row[1].endswith(wanted) and row[3] == _TCP_LISTEN for row in rows):
                return True
    return False


def connectable(path: Path) -> bool:
    """Whether somebody listens on the unix socket; one left by a killed daemon refuses."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def loopback_address(host: str) -> str | None:
    """The IPv4 loopback address the host's name resolves to (127.0.0.1, on Debian 127.0.1.1), else None."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return None
    return address if address.startswith("127.") else None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock on ``folder``, made if missing, so that one ``up`` or ``down`` works on it at a time.

    Raises:
        UserError: it can't be made, or is another user's.
    """
    while True:
        handle = _own_folder(folder)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # The one before us may have removed the folder and us locked what no longer has a name.
            if folder.exists() and os.fstat(handle).st_ino == folder.stat().st_ino:
                yield
                return
        finally:
            os.close(handle)


def _own_folder(folder: Path) -> int:
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UserError(f"--root {folder}: {error.strerror}", "give a folder you may make") from error
    if os.geteuid() not in (0, os.fstat(handle).st_uid):
        os.close(handle)
        raise UserError(f"--root {folder}: is another user's", "give another one, or become that user")
    return handle


def run(argv: list[str], conf: Path, seconds: float = 20) -> subprocess.CompletedProcess[str]:
    """Run one of Slurm's commands against the cluster whose slurm.conf is ``conf``."""
    environment = {**os.environ, "SLURM_CONF": str(conf), "SLURM_TIME_FORMAT": "standard"}
    command = [program(argv[0]) or argv[0], *argv[1:]]
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"{argv[0]}: no answer in {seconds:.0f} s")


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
