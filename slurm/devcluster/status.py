"""What a development cluster is doing right now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slurm.devcluster import daemons, layout, system


@dataclass(frozen=True)
class Status:
    """State of a cluster; ``daemons`` says which run, ``nodes`` gives Slurm's short state of each."""

    root: Path
    slurm_conf: Path
    daemons: dict[str, bool]
    nodes: dict[str, str]
    accounting: bool

    @property
    def up(self) -> bool:
        """Whether every daemon runs, every node is usable and sacct works."""
        usable = all(answers(state) and state not in {"down", "fail"} for state in self.nodes.values())
        return (
            bool(self.daemons)
            and all(self.daemons.values())
            and bool(self.nodes)
            and usable
            and self.accounting
        )

    @property
    def exists(self) -> bool:
        """Whether there is anything of a cluster under ``root``."""
        return bool(self.daemons)

    @property
    def export_line(self) -> str:
        """What to type so that sbatch, squeue, submitit and the launcher use this cluster."""
        return f"export SLURM_CONF={self.slurm_conf}"

    def to_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {
            "up": self.up,
            "root": str(self.root),
            "slurm_conf": str(self.slurm_conf),
            "daemons": self.daemons,
            "nodes": self.nodes,
            "accounting": self.accounting,
        }


def answers(state: str) -> bool:
    """Whether a node in this short state answers the controller: ``idle``, ``drain``; not ``idle*``."""
    return state.isalpha() and state != "unk"


def status(root: Path | None = None) -> Status:
    """Look at the cluster under ``root`` (default: the user's own) and change nothing."""
    where = layout.checked_root(root or layout.default_root())
    conf = layout.slurm_conf(where)
    known = layout.read(where)
    if known is None:
        return Status(where, conf, {}, {}, False)
    running = daemons.recorded(where)
    alive = {
        daemon.name: daemon.name in running and system.alive(running[daemon.name])
        for stage in daemons.stages(known)
        for daemon in stage
    }
    return Status(where, conf, alive, *_slurm_view(conf, alive))


def _slurm_view(conf: Path, alive: dict[str, bool]) -> tuple[dict[str, str], bool]:
    """Nodes with their states, and whether accounting answers; asks only daemons that run."""
    nodes: dict[str, str] = {}
    # Without munge every command would wait for its time limit.
    if alive.get("munged") and alive.get("slurmctld"):
        answer = system.run(["sinfo", "-h", "-N", "-o", "%N %t"], conf)
        nodes = dict(line.split() for line in answer.stdout.splitlines())
    asked = all(alive.get(name) for name in ("munged", "mariadbd", "slurmdbd"))
    accounting = asked and system.run(["sacct", "-n", "-X"], conf).returncode == 0
    return nodes, accounting
