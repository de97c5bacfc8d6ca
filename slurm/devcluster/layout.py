"""What a development cluster consists of: its nodes, ports and folders, all decided once by ``up``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hpcagent_bench import paths
from hpcagent_bench.errors import UserError
from slurm.devcluster import system

# sun_path holds 108 bytes; slurmd's longest socket below the root is spool/spr-01/spr-01_<job>.<step>.
MAX_ROOT_CHARS = 60
SHARED_MEMORY = Path("/dev/shm")
DATABASE_BYTES = 256 << 20


@dataclass(frozen=True)
class Shape:
    """How many nodes of each partition, and what every node claims to have (claims, not hardware)."""

    spr: int = 4
    h20: int = 2
    cpus: int = 8
    memory_mb: int = 64_000
    gpus: int = 8

    def check(self) -> None:
        """Refuse what Slurm would refuse later and less clearly.

        Raises:
            UserError: a count out of range.
        """
        limits = {
            "spr": (1, 99),
            "h20": (0, 99),
            "cpus": (1, 1024),
            "memory_mb": (1000, 1 << 24),
            "gpus": (1, 16),
        }
        for field, (low, high) in limits.items():
            value = getattr(self, field)
            if not low <= value <= high:
                raise UserError(f"devcluster: {field}={value}", f"give a number from {low} to {high}")

    def node_names(self, partition: str) -> list[str]:
        """The partition's node names, ``spr-01`` and so on."""
        count = {"spr": self.spr, "h20": self.h20}[partition]
        return [f"{partition}-{number:02d}" for number in range(1, count + 1)]

    def nodes(self) -> list[str]:
        """All node names, ``spr`` first."""
        return self.node_names("spr") + self.node_names("h20")


@dataclass(frozen=True)
class Layout:
    """One cluster: where its files lie and where its daemons listen.

    ``named_loopback`` says that the host's own name resolves to ``address``, a loopback one: only then can
    Slurm's daemons be told to listen there alone. Else they listen everywhere, behind the munge key.
    """

    root: Path
    shape: Shape
    host: str
    address: str
    named_loopback: bool
    controller_port: int
    accounting_port: int
    node_ports: dict[str, int]
    database: Path
    spool: Path

    @property
    def slurm_conf(self) -> Path:
        """The file ``SLURM_CONF`` must name."""
        return slurm_conf(self.root)

    @property
    def munge_socket(self) -> Path:
        """The socket of the cluster's own munged."""
        return self.root / "munge" / "socket"

    @property
    def database_socket(self) -> Path:
        """The socket of the cluster's own MariaDB."""
        return self.database / "socket"

    def log(self, daemon: str) -> Path:
        """Log file of a daemon (``slurmctld``, ``slurmd-spr-01``, ...)."""
        return self.root / "log" / f"{daemon}.log"

    def folders(self) -> list[Path]:
        """Folders to make before anything starts."""
        inside = [self.root / name for name in ("etc", "log", "munge", "state", "run", "dev")]
        return [*inside, self.database, *(self.spool / node for node in self.shape.nodes())]

    def to_json(self) -> str:
        """Text that ``read`` understands."""
        return json.dumps(dataclasses.asdict(self), default=str, indent=1)


def slurm_conf(root: Path) -> Path:
    """The cluster's slurm.conf under ``root``, whether or not it is up."""
    return root / "etc" / "slurm.conf"


def default_root() -> Path:
    """Where ``up`` puts a cluster: ``/run/hpcagent-devcluster`` for root, a folder of one's own otherwise."""
    if os.geteuid() == 0:
        return Path("/run/hpcagent-devcluster")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "hpcagent-devcluster"
    return Path(tempfile.gettempdir()) / f"hpcagent-devcluster-{os.geteuid()}"


def checked_root(root: Path) -> Path:
    """``root`` as an absolute path that unix sockets fit below.

    Raises:
        UserError: not a folder, too long, or holding a character Slurm's configuration can't carry.
    """
    absolute = root.expanduser().absolute()
    text = str(absolute)
    if len(text) > MAX_ROOT_CHARS:
        raise UserError(f"--root {text}: {len(text)} characters", f"give one of at most {MAX_ROOT_CHARS}")
    if any(character.isspace() or character in "#%,=[]\"'\\" for character in text):
        raise UserError(f"--root {text}: has a character slurm.conf can't carry", "give a plain path")
    if absolute.exists() and not absolute.is_dir():
        raise UserError(f"--root {text}: is not a folder", "give a new one")
    return absolute


def side_folders(root: Path) -> dict[str, Path]:
    """Where parts go that may have to lie outside ``root``; named after it, so ``down`` finds them."""
    name = f"hpcagent-devcluster-{hashlib.blake2b(str(root).encode(), digest_size=6).hexdigest()}"
    return {"database": SHARED_MEMORY / name, "spool": Path("/var/tmp") / name}


def plan(root: Path, shape: Shape) -> Layout:
    """Choose ports and folders for a new cluster; ``root`` exists already."""
    host = socket.gethostname().split(".")[0]
    nodes = shape.nodes()
    own_loopback = system.loopback_address(host)
    address = own_loopback or "127.0.0.1"
    controller, accounting, *node_ports = system.free_ports(2 + len(nodes), address)
    side = side_folders(root)
    return Layout(
        root=root,
        shape=shape,
        host=host,
        address=address,
        named_loopback=own_loopback is not None,
        controller_port=controller,
        accounting_port=accounting,
        node_ports=dict(zip(nodes, node_ports, strict=True)),
        database=side["database"] if _shared_memory_has_room() else root / "database",
        # /run is often mounted noexec, and slurmd starts batch scripts from its spool folder.
        spool=side["spool"] if os.statvfs(root).f_flag & os.ST_NOEXEC else root / "spool",
    )


def _shared_memory_has_room() -> bool:
    """Creating Slurm's tables is mostly waiting for fsync, which costs nothing in memory."""
    return os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > DATABASE_BYTES


def write(layout: Layout) -> None:
    """Keep the layout in its root for later ``up``, ``down`` and ``status``."""
    paths.write_atomic(layout.root / "layout.json", layout.to_json())


def read(root: Path) -> Layout | None:
    """The layout of the cluster under ``root``, None when there is none."""
    try:
        raw = json.loads((root / "layout.json").read_text())
        raw.update({key: Path(raw[key]) for key in ("root", "database", "spool")})
        return Layout(**{**raw, "shape": Shape(**raw["shape"])})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{root / 'layout.json'}: {error}", "end it with: hpcagent-bench devcluster down"
        ) from error
