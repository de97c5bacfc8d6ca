"""What the scheduler knows about our jobs: squeue first, accounting second, processes on this host."""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hpcagent_bench.errors import UserError

StateClass = Literal["waiting", "running", "ended", "ended-by-system", "unknown"]

WAITING = (
    "PENDING",
    "CONFIGURING",
    "EXPEDITING",
    "POWER_UP_NODE",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
)
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "UPDATE_DB")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY")
BY_SYSTEM = (
    "NODE_FAIL",
    "BOOT_FAIL",
    "PREEMPTED",
    "REVOKED",
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
)

CLASSES: dict[str, StateClass] = {
    **dict.fromkeys(WAITING, "waiting"),
    **dict.fromkeys(RUNNING, "running"),
    **dict.fromkeys(ENDED, "ended"),
    **dict.fromkeys(BY_SYSTEM, "ended-by-system"),
}
"""Every job state of Slurm's manual, in one class each; a state not listed is unknown, never ended."""

COMMAND_S = 30
PORTION = 200
"""Ids in one sacct call: a longer list is refused at some sites."""

Runner = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True)
class SlurmView:
    """States by job id (``12`` or ``12_0``). ``answered``: squeue did, so absence from it means something."""

    states: dict[str, str] = field(default_factory=dict)
    answered: bool = True

    def state_class(self, job_id: str) -> StateClass | None:
        """The class of a job's state; None when nobody knows the job."""
        state = self.states.get(job_id)
        return None if state is None else classify(state)


def classify(state: str) -> StateClass:
    """The class of a state as Slurm prints it (``CANCELLED by 0``, ``TIMEOUT+``)."""
    word = re.match(r"[A-Z_]*", state.strip())
    return CLASSES.get(word[0] if word else "", "unknown")


def run(argv: Sequence[str]) -> str | None:
    """Standard output of a scheduler command; None when it is missing, fails or takes over 30 s."""
    try:
        done = subprocess.run(
            list(argv), capture_output=True, timeout=COMMAND_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def expand_ids(text: str) -> list[str]:
    """Job ids of one printed id: ``12``, ``12_3``, ``12_[1-5:2,9%4]``; an ellipsis gives what is legible."""
    head, bracket, inside = text.partition("_[")
    if not bracket:
        return [text]
    found: list[str] = []
    for part in inside.split("]")[0].split("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            found += [f"{head}_{index}" for index in range(first, last + 1, max(1, step))]
    return found


def _rows(text: str) -> dict[str, str]:
    states: dict[str, str] = {}
    for line in text.splitlines():
        printed, bar, state = line.strip().partition("|")
        if bar and printed and "." not in printed:
            states.update(dict.fromkeys(expand_ids(printed), state.split("|")[0]))
    return states


def slurm_view(ids: Iterable[str], runner: Runner = run) -> SlurmView:
    """States of ``ids``: one squeue call for all our jobs, then accounting for those squeue has forgotten."""
    wanted = sorted(set(ids))
    if not wanted:
        return SlurmView()
    queue = runner(["squeue", "-h", "-r", "-u", getpass.getuser(), "-o", "%i|%T"])
    states = {i: s for i, s in _rows(queue or "").items() if i in set(wanted)}
    missing = [i for i in wanted if i not in states]
    heads = sorted({i.split("_")[0] for i in missing})
    for start in range(0, len(heads), PORTION):
        portion = ",".join(heads[start : start + PORTION])
        text = runner(["sacct", "-X", "-n", "-P", "-j", portion, "-o", "JobID,State"])
        rows = _rows(text or "")
        states.update({i: rows[i] for i in missing if i in rows})
    return SlurmView(states, answered=queue is not None)


def find_by_name(name: str, runner: Runner = run) -> str | None:
    """The job (array) id whose job name is ``name``, from squeue, then accounting; None: no such job."""
    user = getpass.getuser()
    queue = runner(["squeue", "-h", "-u", user, f"--name={name}", "-o", "%F"])
    found = (queue or "").split()
    if not found:
        if queue is None:
            raise UserError(f"squeue does not answer: was {name} submitted or not?", "try again later")
        text = runner(
            ["sacct", "-X", "-n", "-P", "-u", user, f"--name={name}", "-S", "now-7days", "-o", "JobID"]
        )
        found = (text or "").split()
    return re.split(r"[_\[]", found[0])[0] if found else None


def max_array_size(default: int, runner: Runner = run) -> int:
    """MaxArraySize of the running Slurm; ``default`` when it does not say."""
    match = re.search(
        r"^MaxArraySize\s*=\s*(\d+)", runner(["scontrol", "show", "config"]) or "", re.MULTILINE
    )
    return max(1, int(match[1])) if match else default


@dataclass(frozen=True)
class Process:
    """A process, known again by its start time (clock ticks since boot), so a reused pid is not it."""

    pid: int
    host: str
    started: int

    def alive(self) -> bool | None:
        """Whether it runs; None when that cannot be told from this host."""
        if self.host != socket.gethostname():
            return None
        return start_time(self.pid) == self.started


def start_time(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def this_process(pid: int | None = None) -> Process:
    """``pid`` (default: the caller) as a Process; a process already gone gets start time 0."""
    number = os.getpid() if pid is None else pid
    return Process(number, socket.gethostname(), start_time(number) or 0)
