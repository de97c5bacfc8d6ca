"""What one node job runs: a judge, the agents' driver, and the merge of what they recorded.

It runs from the frozen code of its run root, takes its turn where node jobs share a host, and always leaves
``end.json``. SIGTERM and the scheduler's warning stop the driver, then the judge; what was graded is merged.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

from experiments import compose, job_layout, scheduler
from experiments.executors import python_path
from experiments.study import partition_of
from experiments.waves import seconds
from hpcagent_bench import config
from hpcagent_bench.cluster.merge_results import merge_job
from hpcagent_bench.errors import UserError
from hpcagent_bench.harness.recording import COMMIT
from hpcagent_bench.paths import write_atomic

JUDGE_START_S = 300
JUDGE_STOP_S = 20
HEARTBEAT_S = 5.0
POLL_S = 0.2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)

_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Stopped(Exception):
    """The job was told to stop, or its time is up; the message says which."""


class NodeJob:
    """One node job on its node."""

    def __init__(self, task_spec: dict[str, Any], root: config.Root) -> None:
        self.spec = task_spec
        self.root = root
        self.run_root = Path(task_spec["run_root"])
        self.job, self.dir = job_layout.claim_folder(self.run_root, job_layout.wanted_number(task_spec))
        self.limit = (
            time.monotonic() + seconds(root.partition.time) - root.cluster.stop_grace_s - JUDGE_STOP_S
        )
        self.told: str | None = None
        self._beat = 0.0
        self._phase = ""

    # Signals and signs of life

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal; the main loop acts on it."""
        self.told = self.told or f"stopped by {signal.Signals(number).name}"

    def tick(self, phase: str) -> None:
        """Leave a sign of life; raises Stopped when it is time to end."""
        now = time.monotonic()
        if phase != self._phase or now - self._beat >= HEARTBEAT_S:
            self._phase, self._beat = phase, now
            with contextlib.suppress(OSError):  # a full disk must not keep the job from ending in order
                write_atomic(self.dir / "heartbeat.json", json.dumps({"phase": phase, "ts": time.time()}))
        if self.told is None and now > self.limit:
            self.told = "stopped by the time limit of its partition"
        if self.told is not None and phase not in ("stopping", "merging"):
            raise Stopped(self.told)

    def wait(self, phase: str, done: Callable[[], bool], limit_s: float | None = None) -> bool:
        """Poll until ``done``; False when ``limit_s`` seconds passed first."""
        until = None if limit_s is None else time.monotonic() + limit_s
        while not done():
            self.tick(phase)
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True

    # The parts of the job

    def point(self) -> None:
        """Leave beside the spec where this job's folder is and which process it is."""
        pointer = {"job": self.job, **dataclasses.asdict(scheduler.this_process())}
        pointer["slurm"] = os.environ.get("SLURM_JOB_ID")
        write_atomic(self.run_root / "waves" / f"{self.spec['stem']}.job.json", json.dumps(pointer))

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the host where node jobs would disturb each other's timings."""
        if not self.root.cluster.exclusive_host:
            self._set_limit()
            yield
            return
        with (self.run_root.parent / f".host-{socket.gethostname()}.lock").open("a") as handle:
            self.wait("queued", lambda: _try_lock(handle))
            self._set_limit()
            yield

    def _set_limit(self) -> None:
        """Time counts from here on: waiting for one's turn on this machine is not work."""
        mine = time.monotonic() + seconds(self.root.partition.time)
        self.limit = min(self._allocation_end(), mine - self.root.cluster.stop_grace_s - JUDGE_STOP_S)

    def _allocation_end(self) -> float:
        """When to stop before the scheduler ends the job, on the monotonic clock; never without one."""
        told = os.environ.get("SLURM_JOB_END_TIME", "")
        if not told.isdigit():
            return float("inf")
        left = int(told) - time.time()
        return time.monotonic() + left - self.root.cluster.stop_grace_s - JUDGE_STOP_S

    def environment(self) -> dict[str, str]:
        """The environment of judge and driver: frozen code, and its commit, before anything installed."""
        code = self.run_root / self.spec["code"]
        frozen = {"PYTHONPATH": python_path(code), "PYTHONSAFEPATH": "1", COMMIT: self.spec["commit"] or ""}
        return {**os.environ, **frozen}

    def start(self, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
        """Start a part of the job with its log; the kernel ends it should this process die."""
        with (self.dir / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(),
                cwd=self.dir,
                preexec_fn=_end_with_parent,
            )

    @contextlib.contextmanager
    def judge(self, cores: job_layout.Cores) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """A serving judge and its address; it is stopped on the way out."""
        argv = ["hpcagent_bench.cli", "serve", "--rank", "0", "--run-dir", str(self.dir), "--record"]
        argv += ["--config", str(self.run_root / self.spec["config"]), "--cores", _list(cores.judge)]
        argv += ["--seeds", str(self.run_root / "secret_seeds.json"), "--with-parent"]
        argv += ["--tokens", str(self.dir / job_layout.TOKENS)]
        process = self.start("judge", argv)
        file = self.dir / "judge" / "rank-0" / "service.json"
        try:
            up = self.wait(
                "starting the judge", lambda: file.is_file() or process.poll() is not None, JUDGE_START_S
            )
            if process.poll() is not None or not up:
                raise UserError(f"the judge did not start: {_tail(self.dir / 'judge.log')}", "see judge.log")
            yield process, str(json.loads(file.read_text())["url"])
        finally:
            self.end_process(process, JUDGE_STOP_S)

    def drive(self, judge: subprocess.Popen[bytes], settings: dict[str, Any]) -> tuple[str, int]:
        """Run the driver to its end; returns why the job ended and the driver's exit code."""
        write_atomic(self.dir / "driver.json", json.dumps(settings, indent=1), mode=0o600)
        driver = self.start("driver", ["hpcagent_agent.driver.agent_driver", str(self.dir / "driver.json")])
        try:
            self.wait("agents at work", lambda: driver.poll() is not None or judge.poll() is not None)
            if judge.poll() is not None:
                return f"the judge died with rc {judge.returncode}", 1
            self.tick("agents ended")  # a scheduler's signal reaches the driver too, which may end first
            code = driver.returncode
            return ("done" if code >= 0 else f"the driver died with rc {code}"), code
        finally:
            self.end_process(driver, self.root.cluster.stop_grace_s)

    def end_process(self, process: subprocess.Popen[bytes], grace_s: float) -> None:
        """SIGTERM, then SIGKILL once ``grace_s`` seconds are over."""
        if process.poll() is None:
            process.terminate()
            if not self.wait("stopping", lambda: process.poll() is not None, grace_s):
                process.kill()
        process.wait()

    def run(self) -> tuple[str, int]:
        """The whole job but the merge; returns its reason and exit code."""
        with self.turn():
            self.tick("laying out")
            job_layout.lay_out(self.spec, self.root, self.dir)
            partition = self.root.partition
            granted = sorted(os.sched_getaffinity(0))
            cores = job_layout.allot_cores(granted, partition.judge_cores, partition.agent_cores)
            write_atomic(
                self.dir / "cores.json", json.dumps({"granted": granted, **dataclasses.asdict(cores)})
            )
            served = job_layout.problems(self.spec, self.root, self.dir, self.job)
            harness = self.root.harnesses[self.spec["harness"]]
            with self.judge(cores) as (judge, url):
                settings = job_layout.driver_settings(harness, self.root, self.dir, served, cores, url)
                return self.drive(judge, settings)

    def finish(self, reason: str, code: int) -> dict[str, Any]:
        """Merge, and leave the end record."""
        merge = "ok"
        try:
            self.tick("merging")
            merge_job(self.dir)
        except UserError as error:
            merge = str(error)
        end = {"reason": reason, "rc": code, "merge": merge, "job": self.job, "ts": time.time()}
        write_atomic(self.dir / "end.json", json.dumps(end))
        return end


def run_node_job(spec_path: str) -> dict[str, Any]:
    """Run the node job described at ``spec_path``; its faults stand in the end record it returns."""
    task_spec = json.loads(Path(spec_path).read_text())
    root = compose.load(Path(task_spec["run_root"]) / task_spec["config"])
    root.partition = partition_of(root, task_spec["setup"]["device"])
    job = NodeJob(task_spec, root)
    with _signals(job.on_signal):
        job.point()
        try:
            reason, code = job.run()
        except Stopped as stop:
            reason, code = str(stop), 143
        except UserError as error:
            reason, code = f"error: {error}", 2
        except Exception as error:
            traceback.print_exc()
            reason, code = f"error: {type(error).__name__}: {error}", 1
        return job.finish(reason, code)


@contextlib.contextmanager
def _signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Take the stop signals, from submitit too: it would requeue or fail the job, and we end it in order."""
    if os.environ.get("SUBMITIT_EXECUTOR") == "local" and os.getpid() != os.getpgid(0):
        os.setsid()  # an interrupt typed at the launcher is not meant for the jobs
    before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _end_with_parent() -> None:
    _LIBC.prctl(_PDEATHSIG, signal.SIGTERM)
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _try_lock(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _list(cores: tuple[int, ...]) -> str:
    return ",".join(str(core) for core in cores)


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1].strip() if lines else "it left no log"
