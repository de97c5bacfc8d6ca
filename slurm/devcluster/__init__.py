"""A real Slurm on one machine, for development and tests: slurmctld, slurmdbd, munge, MariaDB, six slurmd."""

from slurm.devcluster.cli import app
from slurm.devcluster.down import down
from slurm.devcluster.layout import Shape, default_root, slurm_conf
from slurm.devcluster.status import Status, status
from slurm.devcluster.system import APT_LINE, DevclusterError, missing_programs
from slurm.devcluster.up import up

__all__ = [
    "APT_LINE",
    "DevclusterError",
    "Shape",
    "Status",
    "app",
    "default_root",
    "down",
    "missing_programs",
    "slurm_conf",
    "status",
    "up",
]
