"""What a node job puts on disk before its judge and its agents start: material, tokens, driver.json."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hpcagent_bench import config, seal
from hpcagent_bench.corpus import sizing, spec
from hpcagent_bench.episodes import episode_label
from hpcagent_bench.errors import UserError
from hpcagent_bench.paths import write_atomic
from hpcagent_bench.toolchain import abi, languages
from hpcagent_bench.translators import emit

TOKENS = "fused-tokens"
"""Folder in a job's that holds its workers' tokens, by digest."""

TASK_README = """\
{kernel}: what lies here

- {kernel}_numpy.py   the reference that says what is right
- {sources}   the same in compiled form: the source of an implementation to beat
- binding.json        the exact signature: names, types, order, what is input and what is output
- task.json           sizes the judge times, as ranges, and how you deliver

Deliver one source file that defines {symbol} with the parameters of binding.json.
"""

_BESIDE_C: tuple[Literal["cpp", "fortran"], ...] = ("cpp", "fortran")
"""Languages in which an agent that writes them gets the reference as well."""


@dataclass(frozen=True)
class Cores:
    """Which cores grade and which the agents have. ``shared``: there were too few to keep them apart."""

    judge: tuple[int, ...]
    agents: tuple[int, ...]
    shared: bool = False


def allot_cores(granted: Sequence[int], judge: int, agents: int) -> Cores:
    """Split the cores of the real affinity mask: the judge's first, then the agents'.

    With fewer cores than asked for, the judge keeps at least one and agents take the rest; on a single core
    they share it.
    """
    ordered = sorted(granted)
    if len(ordered) == 1:
        return Cores((ordered[0],), (ordered[0],), shared=True)
    mine = min(judge, max(1, len(ordered) - agents))
    return Cores(tuple(ordered[:mine]), tuple(ordered[mine : mine + agents]))


def lay_out_task(folder: Path, kernel: spec.Kernel, root: config.Root, language: str) -> None:
    """Write what an agent may know about a kernel; hidden inputs and drawn sizes are no part of it."""
    folder.mkdir(parents=True, exist_ok=True)
    datatype, fuzz = root.judge.service.datatype, root.judge.fuzz
    shutil.copyfile(kernel.numpy_source, folder / f"{kernel.name}_numpy.py")
    sources = [f"{kernel.name}.c"]
    write_atomic(folder / sources[0], emit(kernel, "c", datatype))
    for own in (other for other in _BESIDE_C if other == language):
        sources.append(kernel.name + languages.get(own).extension)
        write_atomic(folder / sources[-1], emit(kernel, own, datatype))
    write_atomic(folder / "binding.json", json.dumps(abi.binding(kernel, datatype).to_json(), indent=1))
    rung = sizing.rung(kernel, root.sizes, datatype)
    ranges = {n: [int(v * fuzz.xl_lo_mult), int(v * fuzz.xl_hi_mult)] for n, v in rung.items()}
    task = {
        "kernel": kernel.name,
        "track": kernel.track,
        "level": kernel.level,
        "symbol": kernel.symbol,
        "language": language,
        "datatype": datatype,
        "outputs": list(kernel.outputs),
        "preset": sizing.rung_name(root.sizes),
        "size_ranges": ranges,
        "configs": [dict(c) for c in kernel.configs],
        "submission_mode": root.study.submission_mode,
    }
    write_atomic(folder / "task.json", json.dumps(task, indent=1))
    told = {"kernel": kernel.name, "symbol": kernel.symbol, "sources": ", ".join(sources)}
    write_atomic(folder / "README", TASK_README.format(**told))


def file_token(folder: Path, record: dict[str, Any]) -> str:
    """A fresh secret token, filed by its digest with whose work it stands for."""
    token = secrets.token_hex(32)
    name = hashlib.sha256(token.encode()).hexdigest()
    write_atomic(folder / name, json.dumps(record), mode=0o600)
    return token


def problems(task_spec: dict[str, Any], root: config.Root, job_dir: Path, job: int) -> list[dict[str, Any]]:
    """The driver's problems, each with its token; ``worker`` is fixed here because the label names it.

    Must come before the judge starts, which serves the tokens it finds.
    """
    setup, tokens = task_spec["setup"], job_dir / TOKENS
    tokens.mkdir(mode=0o700, exist_ok=True)
    found = []
    for index, piece in enumerate(task_spec["problems"]):
        worker = index % root.partition.workers
        slot = piece["slot"] if root.study.repeat > 1 else None
        label = episode_label(setup["setup"], 0, index, worker, slot)
        episode = {"job": job, "label": label, "rep": 1, "slot": piece["slot"], "kernel": piece["kernel"]}
        record = {
            "setup": setup,
            "episode": episode,
            "language": setup["language"],
            "submission_mode": root.study.submission_mode,
        }
        problem = {
            "id": str(index),
            "kernel": piece["kernel"],
            "language": setup["language"],
            "slot": piece["slot"],
            "setup": setup["setup"],
            "episode_id": label,
            "rep": 1,
            "job": job,
            "worker": worker,
            "token": file_token(tokens, record),
        }
        found.append(problem)
    return found


def seal_prefix(root: config.Root) -> list[str]:
    """The sandbox of an agent, with the driver's placeholders for what differs between episodes."""
    if not root.judge.grading.seal:
        return []
    return seal.agent(workdir=Path("{workdir}"), env={}, judge_socket=Path("{socket}"))


def driver_settings(
    harness: config.Harness,
    root: config.Root,
    job_dir: Path,
    served: list[dict[str, Any]],
    cores: Cores,
    judge_url: str,
) -> dict[str, Any]:
    """The content of ``driver.json`` for the problems that ``problems`` made."""
    prefix = seal_prefix(root)
    return {
        "run_dir": str(job_dir),
        "node": 0,
        "judge_url": judge_url,
        "judge_rank": 0,
        "workers": root.partition.workers,
        "cpus": list(cores.agents),
        "timeout_s": root.study.budgets.timeout_s,
        "max_attempts": harness.max_attempts,
        "max_tokens": root.study.budgets.max_tokens,
        "submission_mode": root.study.submission_mode,
        "shared_dir": str(job_dir / "shared"),
        "problems": [{**problem, "seal_argv": prefix} for problem in served],
        "harness": {
            "name": harness.name,
            "argv": list(harness.argv),
            "env": dict(harness.env),
            "options": dict(harness.options),
        },
        "seal": {"enabled": bool(prefix), "argv": prefix},
    }


def lay_out(task_spec: dict[str, Any], root: config.Root, job_dir: Path) -> None:
    """Write the shared material of every kernel the job serves."""
    if not root.harnesses[task_spec["harness"]].argv:
        raise UserError(f"harness {task_spec['harness']}: argv is empty", "name the program to run")
    for name in sorted({piece["kernel"] for piece in task_spec["problems"]}):
        language = task_spec["setup"]["language"]
        lay_out_task(job_dir / "shared" / "tasks" / name, spec.load(name), root, language)


def claim_folder(run_root: Path, wanted: int) -> tuple[int, Path]:
    """A new job folder named ``wanted``; a number used before (a requeued job) gets 10^9 added."""
    number = wanted
    while True:
        folder = run_root / str(number)
        try:
            folder.mkdir()
        except FileExistsError:
            number += 10**9
            continue
        return number, folder


def wanted_number(task_spec: dict[str, Any]) -> int:
    """Slurm's id of this very task, else the number the launcher reserved."""
    raw = os.environ.get("SLURM_JOB_ID", "")
    on_slurm = os.environ.get("SUBMITIT_EXECUTOR") == "slurm" and raw.isdigit()
    return int(raw) if on_slurm else int(task_spec["local_job"])
