"""Submitting one wave: specs and record are on disk before the scheduler hears of it."""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments import executors, scheduler
from experiments.compose import Composed
from experiments.job import run_node_job
from experiments.runtree import RunRoot
from experiments.study import StudySetup, partition_of
from experiments.waves import ArrayJob, NodeJob, Plan
from hpcagent_bench import config, paths
from hpcagent_bench.errors import UserError

LOCAL_BASE = 100_000
"""A local node job's number is wave × this + task: job numbers are unique in a run root."""

LOCAL_START_S = 60
"""What a local job may take to leave its pointer, on a busy machine."""


def submit_wave(
    root: RunRoot,
    composed: Composed,
    plan: Plan,
    setups: Mapping[str, StudySetup],
    code: Path,
    commit: str | None,
) -> dict[str, Any]:
    """Write and submit the next wave and return its record. UserError with the scheduler's words on refusal.

    ``code`` is the frozen code and ``commit`` the one it was taken from, which every grade records.

    The record is written before each submission (state ``submitting``) and after it, and the job name holds a
    token, so a launcher that dies in between leaves enough to find the jobs again.
    """
    executors.use_slurm_conf(composed.root.cluster)
    folder = log_folder(root)
    number = max((w["wave"] for w in root.wave_records()), default=0) + 1
    paths.write_atomic(root.waves / f"{number}.yaml", composed.text)
    record: dict[str, Any] = {
        "wave": number,
        "created": time.time(),
        "launcher": dataclasses.asdict(scheduler.this_process()),
        "cluster": composed.root.cluster.name,
        "executor": composed.root.cluster.executor,
        "code": str(code.relative_to(root.path)),
        "commit": commit,
        "arrays": [],
        "jobs": [],
    }
    for array in plan.arrays:
        _add_array(root, record, array, setups)
    root.save_wave(record)
    with executors.job_environment(code), executors.apart(folder / "launcher.log"):
        for array_record in record["arrays"]:
            device = setups[array_record["setup"]].row.device
            where = partition_of(composed.root, device)
            _submit(root, record, array_record, composed.root.cluster, where, folder, code)
    return record


def log_folder(root: RunRoot) -> Path:
    """Where the jobs' own logs go; refused here when it cannot be written, before a job dies of it."""
    folder = root.path / "submitit"
    try:
        folder.mkdir(exist_ok=True)
        probe = folder / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder}: job logs cannot be written ({error.strerror})", "mend its rights"
        ) from None
    return folder


def _add_array(
    root: RunRoot, record: dict[str, Any], array: ArrayJob, setups: Mapping[str, StudySetup]
) -> None:
    token = secrets.token_hex(4)
    wave = record["wave"]
    stems = []
    for job in array.jobs:
        stem = f"{wave}-{job.setup}-{job.task}"
        stems.append(stem)
        spec = _spec(root, record, job, setups[job.setup])
        paths.write_atomic(root.waves / f"{stem}.json", json.dumps(spec, indent=1))
        work = [[piece.kernel, piece.slot] for piece in job.work]
        record["jobs"].append({"stem": stem, "setup": job.setup, "task": job.task, "work": work, "id": None})
    name = executors.job_name(array.setup, wave, token)
    record["arrays"].append(
        {
            "setup": array.setup,
            "part": array.part,
            "token": token,
            "name": name,
            "state": "submitting",
            "stems": stems,
        }
    )


def _spec(root: RunRoot, record: dict[str, Any], job: NodeJob, setup: StudySetup) -> dict[str, Any]:
    """What one node job reads: everything it does is here, in the wave's configuration, or in the code."""
    wave = record["wave"]
    return {
        "wave": wave,
        "task": job.task,
        "stem": f"{wave}-{job.setup}-{job.task}",
        "run_root": str(root.path),
        "config": f"waves/{wave}.yaml",
        "code": record["code"],
        "commit": record["commit"],
        "local_job": LOCAL_BASE * wave + job.task,
        "setup": dataclasses.asdict(setup.row),
        "harness": setup.harness.name,
        "problems": [{"kernel": piece.kernel, "slot": piece.slot} for piece in job.work],
    }


def _submit(
    root: RunRoot,
    record: dict[str, Any],
    array: dict[str, Any],
    cluster: config.Cluster,
    partition: config.Partition,
    folder: Path,
    code: Path,
) -> None:
    local = record["executor"] == "local"
    name, token = array["name"], array["token"]
    executor = executors.make(cluster, partition, folder, name, token, code, root.path)
    specs = [str(root.waves / f"{stem}.json") for stem in array["stems"]]
    try:
        jobs = executor.map_array(run_node_job, specs)
        ids = [str(job.job_id) for job in jobs]
    except Exception as error:  # submitit raises its own, the system's and assertion errors alike
        # The scheduler may have taken the array although its answer was lost.
        head = None if local else scheduler.find_by_name(name)
        if head is None:
            _refuse(root, record, array, error)
        ids = array_ids(str(head), len(specs))
    note_submitted(record, array, ids)
    root.save_wave(record)


def _refuse(root: RunRoot, record: dict[str, Any], array: dict[str, Any], error: Exception) -> None:
    """Mark this array and those not tried yet as never submitted, and tell the scheduler's own words."""
    started = False
    for other in record["arrays"]:
        started = started or other is array
        if started:
            mark_refused(record, other)
    root.save_wave(record)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next(
        (line for line in lines if "error" in line.lower()), lines[-1] if lines else type(error).__name__
    )
    raise UserError(
        f"{record['cluster']} refused {array['setup']}: {told}", executors.explain_refusal(str(error))
    )


def mark_refused(record: dict[str, Any], array: dict[str, Any]) -> None:
    """Note that the jobs of an array never reached the scheduler."""
    array["state"] = "refused"
    for job in record["jobs"]:
        if job["stem"] in array["stems"]:
            job["refused"] = True


def note_submitted(record: dict[str, Any], array: dict[str, Any], ids: list[str]) -> None:
    """Note the scheduler's ids of an array's jobs; a local job's is its process."""
    array["state"] = "submitted"
    by_stem = dict(zip(array["stems"], ids, strict=True))
    for job in record["jobs"]:
        if job["stem"] in by_stem:
            job["id"] = by_stem[job["stem"]]
            if record["executor"] == "local":
                job["process"] = dataclasses.asdict(scheduler.this_process(int(job["id"])))


def array_ids(head: str, count: int) -> list[str]:
    """Ids of the tasks of array ``head``; a single job has no index."""
    return [head] if count == 1 else [f"{head}_{index}" for index in range(count)]


def recover(root: RunRoot) -> None:
    """Settle arrays whose launcher died while submitting: find them by name, or note that they never were."""
    for record in root.wave_records():
        unsettled = [a for a in record["arrays"] if a["state"] == "submitting"]
        for array in unsettled:
            if record["executor"] == "local":
                _recover_local(root, record, array)
            else:
                head = scheduler.find_by_name(array["name"])
                if head is None:
                    mark_refused(record, array)
                else:
                    note_submitted(record, array, array_ids(head, len(array["stems"])))
        if unsettled:
            root.save_wave(record)


def _recover_local(root: RunRoot, record: dict[str, Any], array: dict[str, Any]) -> None:
    """A local job that started has left a pointer beside its spec; after a while, the others never will."""
    if time.time() - record["created"] < LOCAL_START_S:
        return
    array["state"] = "submitted"
    for job in record["jobs"]:
        if job["stem"] in array["stems"] and not (root.waves / f"{job['stem']}.job.json").is_file():
            job["refused"] = True
