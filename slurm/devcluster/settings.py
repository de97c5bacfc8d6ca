"""The configuration files of a development cluster, as text."""

from __future__ import annotations

from pathlib import Path
from string import Template

from hpcagent_bench.errors import UserError
from slurm.devcluster.layout import Layout

DATABASE_NAME = "slurm_acct_db"

# proctrack/linuxproc and task/none need no cgroups, config_overrides lets nodes claim CPUs the host lacks,
# and the short timeouts let tests of node failures end soon. ReturnToService=1 brings a node back that fell
# silent, while one that somebody set DOWN stays so until RESUME.
_SLURM_CONF = Template("""\
ClusterName=devcluster
SlurmctldHost=$host($address)
SlurmctldPort=$controller_port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$munge_socket
$communication
StateSaveLocation=$root/state
SlurmdSpoolDir=$spool/%n
SlurmctldPidFile=$root/run/slurmctld.pid
SlurmdPidFile=$root/run/slurmd-%n.pid
SlurmctldLogFile=$root/log/slurmctld.log
SlurmdLogFile=$root/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$address
AccountingStoragePort=$accounting_port
AccountingStoragePass=$munge_socket
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MaxArraySize=1001
MinJobAge=60
KillWait=20
SlurmctldTimeout=10
SlurmdTimeout=20
InactiveLimit=0
ReturnToService=1
MailProg=/bin/true
""")

_SLURMDBD_CONF = Template("""\
AuthType=auth/munge
AuthInfo=socket=$munge_socket
$communication
DbdHost=$host
DbdAddr=$address
DbdPort=$accounting_port
SlurmUser=$user
LogFile=$root/log/slurmdbd.log
PidFile=$root/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=$database_name
""")

# The folder and file names of MariaDB's own table definitions, before and since version 11.
_SYSTEM_TABLES = (
    "/usr/share/mysql/mysql_system_tables.sql",
    "/usr/share/mariadb/mariadb_system_tables.sql",
    "/usr/share/mariadb/mysql_system_tables.sql",
    "/usr/share/mysql/mariadb_system_tables.sql",
)


def _values(layout: Layout, user: str) -> dict[str, str | int | Path]:
    return {
        "host": layout.host,
        "address": layout.address,
        "controller_port": layout.controller_port,
        "accounting_port": layout.accounting_port,
        "munge_socket": layout.munge_socket,
        "root": layout.root,
        "spool": layout.spool,
        "user": user,
        "database_name": DATABASE_NAME,
    }


def _communication(layout: Layout) -> str:
    """Make the controller, and where possible the nodes, listen on the host's own loopback address only.

    On the nodes the setting also binds srun, which is reached at 127.0.0.1 whatever the host's name says
    (on Debian often 127.0.1.1).
    """
    if not layout.named_loopback:
        return ""
    nodes = ",NoInAddrAny" if layout.address == "127.0.0.1" else ""
    return f"CommunicationParameters=NoCtldInAddrAny{nodes}"


def slurm_conf(layout: Layout, user: str) -> str:
    """slurm.conf: partition ``spr`` (default) and, when there are such nodes, ``h20`` with its GPUs."""
    shape = layout.shape
    lines = [_SLURM_CONF.substitute(_values(layout, user), communication=_communication(layout))]
    for node, port in layout.node_ports.items():
        gres = f" Gres=gpu:h20:{shape.gpus}" if node in shape.node_names("h20") else ""
        lines.append(
            f"NodeName={node} NodeHostname={layout.host} NodeAddr={layout.address} Port={port} "
            f"CPUs={shape.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={shape.cpus} ThreadsPerCore=1 "
            f"RealMemory={shape.memory_mb}{gres}\n"
        )
    for partition in ("spr", "h20"):
        nodes = ",".join(shape.node_names(partition))
        default = " Default=YES" if partition == "spr" else ""
        if nodes:
            lines.append(
                f"PartitionName={partition} Nodes={nodes}{default} DefaultTime=60 MaxTime=INFINITE State=UP\n"
            )
    return "".join(lines)


def slurmdbd_conf(layout: Layout, user: str) -> str:
    """slurmdbd.conf, which slurmdbd reads from beside slurm.conf."""
    communication = "CommunicationParameters=NoInAddrAny" if layout.named_loopback else ""
    return _SLURMDBD_CONF.substitute(_values(layout, user), communication=communication)


def gres_conf(layout: Layout) -> str:
    """gres.conf: the same device files serve every GPU node, since nothing ever opens them."""
    nodes = layout.shape.node_names("h20")
    lines = ["AutoDetect=off"]
    if nodes:
        devices = f"{layout.root}/dev/nvidia[0-{layout.shape.gpus - 1}]"
        lines.append(f"NodeName={','.join(nodes)} Name=gpu Type=h20 File={devices}")
    return "\n".join(lines) + "\n"


def database_sql() -> str:
    """What MariaDB runs at each start: its own system tables and Slurm's database, where missing.

    Raises:
        UserError: MariaDB's table definitions are not where its packages put them.
    """
    found = next((Path(path) for path in _SYSTEM_TABLES if Path(path).is_file()), None)
    if found is None:
        raise UserError(
            f"MariaDB: {_SYSTEM_TABLES[0]} is missing", "apt-get install --reinstall mariadb-server-core"
        )
    return (
        "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\n"
        f"{found.read_text()}\nCREATE DATABASE IF NOT EXISTS {DATABASE_NAME};\n"
    )
